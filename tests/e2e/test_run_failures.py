"""Failures of a run, once each on real machines. The tests share one run: each start goes on from what the last one left."""

import contextlib
import dataclasses
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from remote_cluster import ACCOUNT, machine, shell
from traces import processes_of

from microcluster.analysis.failure_hints import next_step
from microcluster.analysis.run_state import Outcome
from microcluster.config.local_files import find_files
from microcluster.core.polling import wait_until
from microcluster.jobs import openseq2seq
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.finished_data import Data
from microcluster.jobs.run_spec import RunFolder, decided
from microcluster.remote import job, steps
from microcluster.remote.host import Host
from microcluster.remote.inventory import inventory

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

START_TIMEOUT_S, END_TIMEOUT_S, LOOK_EVERY_S = 300, 240, 2.0
SAVE_STEPS = 20


@pytest.fixture(scope="module")
def checked(running: ClusterFacts, hosts: list[Host]) -> Iterator[ClusterFacts]:
    """A run that saves often and never evaluates again; whatever is left of it in the end is ended."""
    short = running.job.model_copy(update={"checkpoint_steps": SAVE_STEPS, "eval_steps": 10_000})
    known = dataclasses.replace(running, job=short)
    known = decided(known)
    yield known
    job.stop_job(hosts, known)


@pytest.fixture(scope="module")
def run(checked: ClusterFacts) -> ClusterFacts:
    """The same run with half the start-up cost: one rank on each machine, and no preflight, which has tests of its own."""
    quick = checked.job.model_copy(update={"preflight": "skip: it was checked a moment ago"})
    return dataclasses.replace(checked, slots=1, job=quick)


def started(hosts: list[Host], run: ClusterFacts) -> Outcome:
    """Start the run, and return once it has made steps that no earlier attempt has made."""
    goal = (job.observe(hosts[0], run).step or 0) + 10
    assert job.start_job(hosts, run) == "started"

    def trains() -> Outcome | None:
        seen = job.observe(hosts[0], run)
        assert seen.state in ("preparing", "running"), (seen.reason, seen.last_lines)
        return seen if (seen.step or 0) >= goal else None

    return wait_until(f"step {goal}", trains, timeout_s=START_TIMEOUT_S, every_s=LOOK_EVERY_S)


def end_of(hosts: list[Host], run: ClusterFacts) -> Outcome:
    def over() -> Outcome | None:
        seen = job.observe(hosts[0], run)
        return seen if seen.state not in ("preparing", "running", "stalled") else None

    return wait_until("the end of the run", over, timeout_s=END_TIMEOUT_S, every_s=LOOK_EVERY_S)


def rank_pid(host: Host, run: ClusterFacts) -> str:
    """Return the process of the rank on a host, not the one that waits for its end."""
    marked = f"grep -slz '^MICROCLUSTER_RUN={run.run}$' /proc/[0-9]*/environ | xargs grep -slz ^OMPI_COMM_WORLD_RANK="
    return shell(
        host, f"{marked} | sed s/environ/cmdline/ | xargs grep -sLz '^launch.rank_wrapper$' | cut -d/ -f3"
    ).strip()


def events_of(host: Host, run: ClusterFacts, kind: str) -> list[dict[str, object]]:
    lines = shell(host, f"cat /data/runs/{run.run}/progress.jsonl").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_a_wrong_interface_ends_the_run_before_the_ranks_start(checked, hosts):
    assert job.start_job(hosts, dataclasses.replace(checked, interface="ens3")) == "started"
    ended = end_of(hosts, checked)
    assert ended.cause == "preflight"
    assert "interface of gpu-0: no ens3; it has eth0, eth1" in ended.reason


def test_a_machine_with_another_rank_key_is_named_and_mended_next(checked, hosts, keys):
    hosts[1].put("/run/microcluster/authorized_keys", (keys / "stranger.pub").read_text(), "0600")
    assert job.start_job(hosts, checked) == "started"
    ended = end_of(hosts, checked)
    assert ended.cause == "not-brought-back"
    assert "asking gpu-1 for " in ended.reason and "Permission denied" in ended.reason
    assert "fab resume" in next_step(ended, "test")
    assert steps.start_container(hosts[1], checked) == ["files of the ranks"]  # As `fab resume` does.


def test_a_sound_run_leaves_its_table_samples_and_a_checkpoint_replica(checked, hosts):
    seen = started(hosts, checked)
    assert job.start_job(hosts, checked) == "running"
    preflight = json.loads(hosts[0].read(f"{RunFolder(checked).path}/preflight.json"))
    assert [(rank["rank"], rank["host"]) for rank in preflight["ranks"]] == [
        (0, "gpu-0"),
        (1, "gpu-0"),
        (2, "gpu-1"),
        (3, "gpu-1"),
    ]
    assert any("orted" in line for line in processes_of(checked.run))
    verdicts = {row["check"]: row["verdict"] for row in seen.checks}
    assert {"ssh", "interface", "GPUs", "driver", "bandwidth", "allreduce", "image", "data"} <= verdicts.keys()
    assert "stop" not in verdicts.values()
    # The first copy may come before the first best model.
    wait_until(
        "the copy of a best model",
        lambda: any(event["best"] for event in events_of(hosts[0], checked, "copied")),
        timeout_s=90,
    )
    copy = f"/data/runs/{checked.run}/in_container/copy/logdir"
    assert shell(
        hosts[1], f"ls {copy}/model.ckpt-*.index {copy}/best_models/val_loss=*.index {copy}/best_models/checkpoint"
    )
    samples = shell(hosts[0], f"tail -2 /data/runs/{checked.run}/samples.jsonl").splitlines()
    assert [len(json.loads(line)["gpus"]) for line in samples] == [2, 2]


def test_the_corpus_was_made_in_a_container_that_is_gone(run, hosts):
    # Whichever run of the shared machines was the first has made them.
    told = shell(hosts[0], "grep -h staging /data/runs/*/job.log /data/runs/*/progress.jsonl")
    assert "staging: finished: 8 files in /data/debian_en_de\n" in told
    assert "no machine has the data; making them" in told
    assert (
        shell(hosts[0], "docker ps -aq --filter label=microcluster.staging; ls -A /data/container/staging/*").strip()
        == "lock"
    )


def test_a_program_reaches_nothing_that_root_runs_or_writes(run, hosts):
    folder = RunFolder(run).path
    attack = f"""cd {folder}; for file in $(find agent -name '*.py'); do echo 'open("/root/owned", "w")' > $file; done
    sed 's/python3/touch/g' job.json > other; mv other job.json; echo 0 > exit_code
    for name in job.log progress.jsonl stopped alive_at; do ln -sfn /root/owned $name; done
    mkdir /data/planted; ln -sfn /data/planted torn; ls /data/docker 2>/dev/null; ls -d /data/container 2>/dev/null; true"""
    for host in hosts:
        assert host.run(("docker", "exec", "openseq2seq", "sh", "-c", attack)).stdout == ""
    assert job.observe(hosts[0], run).state == "running"
    assert inventory(hosts, run).files
    assert job.stop_job(hosts, run, graceful=True) == {}
    newest = shell(hosts[0], f"ls -t {folder}/in_container/logdir/model.ckpt-*.data* | head -1").strip()
    shell(hosts[0], f"truncate -s 1000 {newest}")
    started(hosts, run)
    assert "it lies in" in events_of(hosts[0], run, "passed_over")[-1]["text"]
    for host in hosts:
        assert "owned" not in shell(host, "ls /root")
        assert "planted" not in shell(host, "ls /data"), "where root would have put a checkpoint aside"


def test_a_killed_supervisor_is_missed_and_the_next_start_resumes(run, hosts):
    shell(hosts[0], f"kill -KILL $(cat /data/runs/{run.run}/supervisor.pid)")
    gone = job.observe(hosts[0], run)
    assert (gone.state, gone.cause) == ("failed", "supervisor-gone")
    shell(
        hosts[0], "rm -rf /data/container/debian_en_de"
    )  # As on a launcher that was replaced; the next test looks at what became of it.
    started(hosts, run)


def test_a_launcher_that_lost_its_data_got_them_from_another_machine(run, hosts):
    assert [event["text"] for event in events_of(hosts[0], run, "staging")][-2:] == [
        "bringing the data from gpu-1, which has them whole",
        "the data of gpu-1 are here",
    ]
    assert shell(hosts[0], "cd /data/debian_en_de && sha256sum -c --status SHA256SUMS && echo good") == "good\n"


def test_a_dead_rank_is_named_and_no_process_left_after_mpiruns_crash(run, hosts):
    pid = shell(hosts[0], f"pgrep -f '^mpirun .*{run.run}'").strip()
    shell(hosts[0], f"kill -STOP {pid}")  # So that it cannot say which rank has died before it crashes.
    shell(hosts[1], f"kill -KILL {rank_pid(hosts[1], run)}")
    shell(hosts[0], f"kill -SEGV {pid}; kill -CONT {pid}")
    ended = end_of(hosts, run)
    assert ended.cause == "rank-died"
    assert ended.reason.startswith("rank 1 on gpu-1 ended with signal 9"), (
        "rank 0 may have ended at about the same time"
    )
    assert ended.last_lines
    assert processes_of(run.run) == []


def test_torn_checkpoints_lost_best_models_and_changed_data_are_restored(run, hosts):
    logdir = f"/data/runs/{run.run}/in_container/logdir"
    torn = shell(hosts[0], f"ls -t {logdir}/model.ckpt-*.data* | head -1").strip()
    best = "sha256sum best_models/val_loss=* best_models/checkpoint"
    before = shell(hosts[0], f"cd {logdir} && {best} && rm -r best_models && truncate -s 1000 {torn}")
    shell(hosts[1], "printf x | dd of=/data/debian_en_de/train.en.tok bs=1 seek=100 conv=notrunc 2>/dev/null")
    stalling = dataclasses.replace(run, job=run.job.model_copy(update={"stall_s": 60}))
    started(hosts, stalling)
    assert events_of(hosts[0], run, "brought_back")[-1]["from"] == "gpu-1"
    assert int(shell(hosts[0], f"stat -c %s {torn}")) > 1000
    # Of those that were brought the newest stays, which has the lowest loss of its attempt; its list is the framework's again.
    newest = [line for line in before.splitlines() if f"-step-{newest_of(before)}." in line]
    assert set(newest) <= set(shell(hosts[0], f"cd {logdir} && {best}").splitlines())
    assert shell(hosts[1], "cd /data/debian_en_de && sha256sum -c --status SHA256SUMS && echo good") == "good\n"


def newest_of(listing: str) -> int:
    return max(int(step) for step in re.findall(r"-step-(\d+)\.index", listing))


def test_ranks_that_stand_still_end_the_run_as_stalled(run, hosts):
    shell(hosts[1], f"kill -STOP {rank_pid(hosts[1], run)}")
    ended = end_of(hosts, run)
    assert ended.cause == "stalled"
    assert processes_of(run.run) == []


def test_a_network_that_is_cut_ends_the_run_on_both_sides(run, hosts):
    started(hosts, run)
    with cut_off(hosts[1].facts.private_address):
        ended = end_of(hosts, run)
        assert ended.cause == "node-lost"
        assert "gpu-1" in ended.reason
        wait_until("the other side's ranks to end", lambda: not processes_of(run.run), timeout_s=240)


def test_a_killed_machine_is_named_and_the_run_resumes_with_it(run, hosts, machines, keys):
    started(hosts, run)
    kill(hosts[1])
    ended = end_of(hosts, run)
    machines.boot(machine(1, keys))
    hosts[1].close()
    steps.prepare_node(hosts[1], run)
    steps.mount_volume(hosts[1], run)
    steps.start_container(hosts[1], run)
    assert ended.cause == "node-lost"
    assert "gpu-1" in ended.reason
    started(hosts, run)


def kill(host: Host) -> None:
    """Let a machine be gone from one moment to the next, without a word to anybody."""
    docker.from_env().containers.get(f"{ACCOUNT}-{host.facts.guest_id}").kill()


@contextlib.contextmanager
def cut_off(address: str) -> Iterator[None]:
    """Take away every packet of one machine on the private bridge, from outside the machine."""
    mark = ["-m", "comment", "--comment", "microcluster-test", "-j", "DROP"]
    rules = [["FORWARD", way, address, *mark] for way in ("-s", "-d")]
    for rule in rules:
        subprocess.run(["iptables", "-I", *rule], check=True)
    try:
        yield
    finally:
        for rule in rules:
            subprocess.run(["iptables", "-D", *rule], check=True)


def test_a_full_disk_ends_the_run_with_room_for_its_words(run, hosts):
    # More than there is: it takes all that it can get, also what the file system keeps for root, whom the ranks run as.
    shell(hosts[0], "fallocate -l $(($(stat -f -c '%f * %S' /data))) /data/filler || true")
    try:
        assert end_of(hosts, run).cause == "disk-full"
    finally:
        shell(hosts[0], "rm -f /data/filler")


def test_stopping_ends_what_hides_in_the_container_and_leaves_a_bystander_alone(run, hosts):
    started(hosts, run)
    words = shell(hosts[1], f"tr '\\0' ' ' < /proc/{rank_pid(hosts[1], run)}/cmdline").split()
    spin = "import time; time.sleep(600)"
    bystander = f'nohup python3 -c "{spin}" {" ".join(words[1:])} >/dev/null 2>&1 & echo $!'
    pid = shell(hosts[1], bystander).strip()
    inside = ("docker", "exec", "-d", "-e", "MICROCLUSTER_TOOL=x", "openseq2seq")
    hosts[1].run((*inside, "python", "-c", spin, "tool"))
    hosts[1].run((*inside, "env", "-i", "python", "-c", spin, "hidden"))
    try:
        assert job.stop_job(hosts, run) == {}
        left = shell(hosts[1], "ps -eo pid,args | grep 'time.sleep[(]600'")
        assert pid in left
        assert "tool" in left
        assert "hidden" not in left
    finally:
        shell(hosts[1], "for p in $(pgrep -f 'time.sleep[(]600'); do kill $p; done; true")
    assert processes_of(run.run) == []


def test_finished_data_of_this_computer_are_sent_and_trained_on(run, hosts, tmp_path):
    made = job_data(hosts, run, tmp_path)
    brought = dataclasses.replace(run, data=made)
    brought = decided(brought)
    started(hosts, brought)
    assert job.stop_job(hosts, brought) == {}
    folder = RunFolder(brought).data.folder
    assert [shell(host, f"cat {folder}/ID").strip() for host in hosts] == [made.id] * 2


def job_data(hosts: list[Host], run: ClusterFacts, folder: Path) -> Data:
    """Return the small data set as an operator has it who has made it before."""
    names = sorted(RunFolder(run).data.files)
    there = RunFolder(run).data.folder
    for name in names:
        size = int(shell(hosts[0], f"stat -c %s {there}/{name}"))
        (folder / name).write_bytes(b"".join(hosts[0].pieces(f"{there}/{name}", 0, size)))
    return find_files(Data(path=str(folder)), names, (), folder / "memory.json")


def test_a_loss_that_stays_no_number_ends_the_run(run, hosts, monkeypatch):
    size = dataclasses.replace(openseq2seq.SIZES["transformer-tiny"], learning_rate=1e30)
    monkeypatch.setitem(openseq2seq.SIZES, "transformer-tiny", size)
    wild = decided(run)
    assert job.start_job(hosts, wild) == "started"
    ended = end_of(hosts, wild)
    assert ended.cause == "nan"
    assert processes_of(wild.run) == []


def test_a_run_stopped_while_its_data_are_made_leaves_no_container(run, hosts):
    for host in hosts:
        shell(host, "rm -rf /data/container/debian_en_de")
    assert job.start_job(hosts, run) == "started"
    listing = f"docker ps -q --filter label=microcluster.staging={run.run}"
    wait_until(
        "the container in which the data are made", lambda: bool(shell(hosts[0], listing)), timeout_s=60, every_s=0.1
    )
    assert job.stop_job(hosts, run) == {}
    assert shell(hosts[0], "docker ps -aq --filter label=microcluster.staging") == ""
    assert processes_of(run.run) == []
