"""A run before a queue, on the login host and in the queue's job."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from played_queue import PlayedQueue

import agent
from agent.batch import commands, job, login, step
from agent.batch.job import Walltime
from agent.run import queue_nodes

REAL = Path(__file__).parent / "real_queues"
AGENT = Path(agent.__file__).parent
MINE = "mc1f3a9c4200e11"
UNCLEAR = {"sn01": "", "sn02": "processes [7] would not end"}
BEGUN = '[["sn01", "10.0.0.1"], ["sn02", "10.0.0.2"]]'


@pytest.fixture
def queue(tmp_path, monkeypatch) -> PlayedQueue:
    return PlayedQueue(tmp_path, monkeypatch)


def submitted(queue: PlayedQueue, **other: object) -> dict:
    return login.submit(queue.request | other)


def real(name: str) -> str:
    return (REAL / name).read_text()


def test_the_jobs_of_a_real_qstat_are_read_in_their_order():
    found = commands.jobs(real("slurm_qstat.txt"))
    assert [(each.number, each.state) for each in found] == [("1", "C"), ("2", "C"), ("3", "R"), ("4", "Q"), ("5", "Q")]
    assert found[2] == commands.Job("3", MINE, "researcher", "R", "gpu")


def test_a_job_number_is_the_same_without_torques_server_name():
    table = "Job ID  Name User Time Use S Queue\n------- ---- ---- -------- - -----\n213061.mgmt STDIN ykao 0 Q gpu\n"
    assert commands.jobs(table) == [commands.Job("213061", "STDIN", "ykao", "Q", "gpu")]
    assert commands.submitted("213061.sn-mgmt.cm.cluster\n") == ["213061"]
    assert commands.submitted("sbatch: error: invalid partition specified: nosuch\n") == []
    answered = [code in commands.ANSWERS for code in (0, 153, 8)]
    assert answered == [True, True, False], "a queue without jobs has answered, one that cannot be reached has not"


@pytest.mark.parametrize("name", ["slurm_qstat_q.txt", "torque_qstat_q.txt"])
def test_a_queues_limit_is_read_from_slurms_and_torques_tables(name):
    assert commands.queues(real(name))["gpu"] == (8 * 3600, None)
    forms = {"08:00:00": 28800, "2-00:00:00": 172800, "01:08:00:00": 115200, "--": None}
    assert {text: commands.seconds(text) for text in forms} == forms


def test_the_nodes_of_a_real_pbsnodes_have_their_processors():
    both = real("slurm_pbsnodes.txt")
    assert commands.nodes(both) == [8, 8]
    assert commands.nodes(both.replace("= free", "= down,offline")) == [0, 0]


def test_a_torque_step_passes_on_environment_output_and_exit_code(tmp_path, monkeypatch, capfdbinary):
    (tmp_path / "pbsdsh").write_text('#!/bin/sh\necho "$1 $2 $3"; shift 3; exec env -i "$@"\n')
    (tmp_path / "pbsdsh").chmod(0o755)
    for name, value in (("PATH", f"{tmp_path}:{os.environ['PATH']}"), ("PBS_JOBID", "7"), ("SECRET", "x")):
        monkeypatch.setenv(name, value)
    assert step.torque_step("sn02", "echo $PBS_JOBID $SECRET; (exit 3)") == 3
    assert capfdbinary.readouterr().out == b"-o -h sn02\n7\n"


def test_a_job_asks_all_in_one_option_l_and_forbids_reruns(queue):
    assert submitted(queue) == {"job": "100", "new": True}
    assert "-N mc1f3a9c4200e11 -q gpu -l nodes=2:ppn=4,walltime=7200 -r n" in queue.submissions[0]


def test_a_run_is_submitted_again_without_what_its_last_job_left(queue):
    queue.has(f"7 {MINE} C gpu")
    left = [queue.folder / name for name in ("exit_code", "guard.json")]
    for each in left:
        each.write_text("1\n")
    assert submitted(queue)["new"]
    assert not any(each.exists() for each in left)


def test_what_the_queue_says_to_a_refused_run_is_handed_on(queue):
    (queue.here / "refusal").write_text("invalid partition specified: gpu\n")
    with pytest.raises(login.QueueError, match="it was refused: invalid partition specified: gpu. Change the cluster"):
        submitted(queue)


def test_a_waiting_run_shows_its_place_in_the_queue(queue):
    queue.has("1 a R gpu", "2 b Q gpu", "3 c Q gpu-long", f"4 {MINE} Q gpu", "5 d Q gpu")
    seen = login.look(queue.request)
    assert (seen["alive"], seen["phase"]) == (True, "queued")
    assert [seen["queue"][key] for key in ("job", "position", "waiting")] == ["4", 2, 3]


def test_a_run_whose_job_left_the_queue_is_not_alive(queue):
    queue.has(f"4 {MINE} C gpu")
    with (queue.folder / "supervisor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert login.look(queue.request)["alive"] is False


def test_a_running_run_shows_its_phase_and_its_silence_by_file_time(queue):
    queue.has(f"4 {MINE} R gpu")
    (queue.folder / "phase").write_text("training")
    (queue.folder / "alive_at").write_text("1.0")
    os.utime(queue.folder / "alive_at", (0, time.time() - 50))
    seen = login.look(queue.request)
    assert (seen["phase"], "queue" in seen) == ("training", False)
    assert 49 < seen["silent_s"] < 60


@pytest.mark.parametrize(
    ("word", "proof"),
    [
        (None, {"the nodes of job 4": "it ended without a word of its processes"}),
        (UNCLEAR, UNCLEAR),
    ],
)
def test_only_the_running_job_itself_proves_the_end_on_each_node(queue, monkeypatch, word, proof):
    monkeypatch.setattr(login, "ASKED_S", 0)
    queue.has(f"4 {MINE} R gpu")
    if word:
        (queue.folder / "nodes_ended.json").write_text(json.dumps(word))
    assert login.leave(queue.request) == proof
    assert (queue.folder / "stop_asked").exists()


def test_a_job_that_stays_in_the_queue_is_named_as_that(queue, monkeypatch):
    monkeypatch.setattr(login, "GONE_S", 0)
    submitted(queue)
    (queue.here / "qdel").write_text("#!/bin/sh\n")
    with pytest.raises(login.QueueError, match="job 100 is still there after qdel"):
        login.leave(queue.request)


def test_two_commands_may_end_a_run_at_once(queue, monkeypatch):
    def after_the_other(source, target):
        raise FileNotFoundError(source)  # It has renamed what both were writing.

    submitted(queue)
    with monkeypatch.context() as at_once:
        at_once.setattr(os, "rename", after_the_other)
        assert login.leave(queue.request) == {}
    assert queue.living == [] and (queue.folder / "stopped").exists()


def test_fewer_nodes_than_asked_for_end_the_run_with_a_named_cause(with_agent, monkeypatch):
    failure = job_on(with_agent, monkeypatch, "sn01")
    assert failure == {"cause": "queue", "sentence": "the queue granted 1 and not 2 nodes", "lines": []}


def test_a_slow_qsub_delays_the_next_command_after_its_caller_was_killed(queue):
    queue.does("slow", "2")
    caller = subprocess.Popen([sys.executable, str(AGENT), "batch.login", "submit", json.dumps(queue.request)])
    while not (queue.here / "begun").exists():
        time.sleep(0.01)
    caller.kill()
    caller.wait()
    assert submitted(queue) == {"job": "100", "new": False}
    assert len(queue.submissions) == 1


def test_an_earlier_command_that_never_ends_is_named_after_a_limit(queue, monkeypatch, capsys):
    monkeypatch.setattr(login, "LOCK_TIMEOUT_S", 0)
    with login.locked():
        login.main("submit", json.dumps(queue.request))
    assert "Run the same command again" in json.loads(capsys.readouterr().out)["failed"]
    assert queue.submissions == []


def test_a_late_job_does_not_replace_the_one_that_did_the_run(queue):
    queue.does("twice")
    assert submitted(queue) == {"job": "100", "new": True}
    assert queue.living == ["100"], "of two jobs that one qsub has made one is left"
    queue.has(f"100 {MINE} C gpu", f"101 {MINE} Q gpu")
    (queue.here / "twice").unlink()
    assert submitted(queue) == {"job": "102", "new": True}
    assert queue.living == ["102"]


def test_a_strangers_job_of_the_same_name_is_neither_found_nor_deleted(queue):
    queue.has(f"7 {MINE} R gpu stranger")
    assert submitted(queue)["new"]
    login.leave(queue.request)
    assert queue.living == ["7"]


def test_a_copied_key_in_another_folder_finds_and_deletes_no_job(queue, tmp_path):
    (tmp_path / "other").mkdir()
    other = {"folder": str(tmp_path / "other"), "stack": "copy", "name": "mc1f3a9c42c0b1e"}
    assert submitted(queue, **other)["new"]
    assert submitted(queue)["new"]
    login.leave(queue.request | other)
    assert queue.living == ["101"]


def test_the_job_of_another_stack_in_the_same_folder_is_not_ended(queue):
    submitted(queue)
    assert login.leave(queue.request | {"stack": "copy"}) == {}
    assert (queue.living, (queue.folder / "stop_asked").exists()) == (["100"], False)


@pytest.mark.parametrize("saved", [None, 5])
def test_after_a_walltime_without_a_checkpoint_only_a_longer_one_is_requested(queue, saved):
    submitted(queue)
    queue.has(f"100 {MINE} C gpu")
    earlier = Walltime(100.0, 0.0)
    sentences = [earlier.verdict(*look) for look in ((0.0, None), (70.0, saved), (101.0, saved))]
    (queue.folder / "failure.json").write_text(json.dumps({"sentence": sentences[-1]}))
    if not saved:
        with pytest.raises(login.QueueError, match="job 100 of this run had 2 nodes for 2.0 h and nothing was saved"):
            submitted(queue)
    assert submitted(queue, walltime=7200 if saved else 7201)["new"]


def begun(queue: PlayedQueue, number: str) -> tuple[int, dict]:
    """Run the script of a job as the queue does; return its exit code and the last life that was written down."""
    environment = {**os.environ, "PBS_JOBID": f"{number}.master", "PBS_NODEFILE": "/nowhere"}
    code = subprocess.run(["/bin/bash", str(queue.folder / "job.sh")], env=environment, check=False).returncode
    lives = sorted((queue.home / ".microcluster/jobs").glob(f"{number}.*.json"), key=os.path.getmtime)
    return code, json.loads(lives[-1].read_text()) if lives else {}


@pytest.fixture
def with_agent(queue):
    (queue.folder / "agent").symlink_to(AGENT)
    submitted(queue)
    return queue


def test_a_job_not_chosen_or_rerun_ends_itself_and_is_recorded(with_agent):
    (with_agent.folder / "granted.json").write_text(BEGUN)
    for number, says in (("555", False), ("100", True)):
        code, life = begun(with_agent, number)
        assert code == job.REFUSED and life["ended"] >= life["started"]
        assert (with_agent.folder / "failure.json").exists() == says
    assert "began job 100 again" in json.loads((with_agent.folder / "failure.json").read_text())["sentence"]
    assert not (with_agent.folder / "nodes_ended.json").exists()


def test_a_job_submitted_after_its_run_was_left_ends_itself(with_agent):
    (with_agent.folder / "stop_asked").touch()
    code, life = begun(with_agent, "100")
    assert "ended" in life and (with_agent.folder / "stopped").exists()


def test_a_job_with_missing_modules_is_on_the_receipt_with_its_end(with_agent):
    (with_agent.home / ".microcluster/prelude").write_text("exit 3\n")
    code, life = begun(with_agent, "100")
    assert (code, life["name"]) == (3, MINE) and life["ended"] >= life["started"]


def test_the_programs_secrets_go_with_the_job_and_with_the_run(with_agent):
    secrets = with_agent.folder / "secrets"
    for end in (lambda: begun(with_agent, "100"), lambda: login.leave(with_agent.request)):
        secrets.mkdir()
        (secrets / "WANDB_API_KEY").write_text("x")
        (with_agent.folder / "stop_asked").touch()
        end()
        assert not secrets.exists()


def test_a_clock_step_does_not_move_the_end_of_the_walltime(queue, monkeypatch):
    walltime = Walltime(time.monotonic() + 5, time.monotonic())
    monkeypatch.setattr(job, "checkpoints_in", lambda folder: None)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(job, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(job.subprocess, "Popen", lambda *_, **__: Child())
    assert job.carry_out(str(queue.folder), "r", walltime, SimpleNamespace(seen=lambda: None)) == 0


def job_on(queue: PlayedQueue, monkeypatch, *nodes: str, began: float = 0.0) -> dict:
    """Carry out a job whose supervisor does nothing; return why it failed."""
    folder, started = queue.folder, time.time() - began
    (folder / "life").write_text(json.dumps({**queue.request, "id": "100", "started": started}))
    (folder / "nodes").write_text("\n".join(nodes * 2))
    monkeypatch.setenv("PBS_NODEFILE", str(folder / "nodes"))
    monkeypatch.setattr(job, "on_node", lambda *words: (0, "10.0.0.1"))
    monkeypatch.setattr(job.kill_run, "end", lambda *words, **more: ([], []))
    monkeypatch.setattr(job.subprocess, "Popen", lambda *_, **__: Child())
    before = signal.getsignal(signal.SIGTERM)
    job.main(str(folder), str(folder / "life"))
    signal.signal(signal.SIGTERM, before)
    assert not (folder / "stopped").exists()
    return json.loads((folder / "failure.json").read_text())


@pytest.mark.parametrize(
    ("phase", "sentence"), [("preparing", "in this phase: preparing"), ("training", "nothing was saved in it")]
)
def test_a_walltime_that_ends_in_vain_is_named_as_the_cause(with_agent, monkeypatch, phase, sentence):
    (with_agent.folder / "phase").write_text(phase)
    monkeypatch.setattr(job, "checkpoints_in", lambda folder: SimpleNamespace(newest_whole=lambda: None))
    failure = job_on(with_agent, monkeypatch, "sn01", "sn02", began=7300)
    assert (failure["cause"], sentence in failure["sentence"]) == ("walltime", True)
    assert json.loads((with_agent.folder / "granted.json").read_text()) == [[n, "10.0.0.1"] for n in ("sn01", "sn02")]


class Child:
    """A supervisor that ends after some looks."""

    looks, returncode = 0, 0

    def poll(self):
        self.looks += 1
        return 0 if self.looks > 5 else None


def test_addresses_of_granted_nodes_replace_their_placeholders(tmp_path):
    text = '["{node-0}:48123", "{node-1}"]'
    assert queue_nodes.filled(text, str(tmp_path)) == text
    (tmp_path / "granted.json").write_text(BEGUN)
    assert queue_nodes.filled(text, str(tmp_path)) == '["10.0.0.1:48123", "10.0.0.2"]'


@pytest.mark.parametrize(
    ("looks", "verdict"),
    [
        ([(700.0, 40), (900.0, 40), (910.0, 50)], "goes on from step 50"),
        ([(700.0, None), (1000.0, None)], "nothing was saved"),
        ([(900.0, 40), (950.0, 50)], "goes on from step 50"),
    ],
)
def test_late_in_the_walltime_a_checkpoint_or_its_end_stops_the_run(looks, verdict):
    time_left = Walltime(ends_at=1000.0, now=0.0)
    *before, last = looks
    assert [time_left.verdict(*look) for look in before] == [""] * len(before)
    assert verdict in time_left.verdict(*last)


def test_a_log_folder_that_cannot_be_read_does_not_outlast_the_walltime(tmp_path):
    (tmp_path / "phase").write_text("training")

    def lost():
        raise OSError("stale file handle")

    def look(left_s):
        walltime = Walltime(time.monotonic() + left_s, time.monotonic())
        job.check_time(str(tmp_path), walltime, SimpleNamespace(newest_whole=lost))

    look(left_s=1000)
    with pytest.raises(job.Ended, match="the walltime ends"):
        look(left_s=-1)


def test_an_empty_queue_waits_and_a_host_without_queue_commands_is_named(queue, monkeypatch):
    queue.has()
    assert login.listed(str(queue.folder), time.time()) == []
    with monkeypatch.context() as patch:
        patch.setattr(login, "in_queue", lambda: pytest.fail("asked again"))
        assert login.listed(str(queue.folder), time.time()) == []
    queue.has()
    (queue.here / "qstat").unlink()
    with pytest.raises(login.QueueError, match="there is no qstat on this host"):
        login.listed(str(queue.folder), time.time())
