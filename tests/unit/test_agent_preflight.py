"""The preflight: what was found, compared with what was ordered, who is named, and the port where all nodes meet."""

import json
import shutil
import socket

import pytest
import sample_spec
from supervised_run import FACTS, RANKS, carry_out, end_run, hurry, write_job

from agent.launch.probe import UNUSABLE
from agent.run.context import Run
from agent.supervise import preflight
from microcluster.jobs.ranks import MEETING_PORT
from microcluster.remote.job import AGENT
from tests.product import free_port

WANTED = {"gpu": "P100", "disk_bytes": 10**10, "model_bytes": 243_000_000}
GPU = {"name": "Tesla P100-PCIE-16GB", "memory_mib": 16280, "driver": "440.118.02", "utilisation": 0, "fault": ""}


def node(private, **changes):
    return {**FACTS, "address": private, "gpus": [GPU, GPU], "clock_off_s": 0.1, "clock_error_s": 0.2, **changes}


def found(first=None, second=None, **changes):
    nodes = {"gpu-0": node("10.0.0.0", **(first or {})), "gpu-1": node("10.0.0.1", **(second or {}))}
    mesh = [{"from": "gpu-0", "to": "gpu-1", "said": ""}, {"from": "gpu-1", "to": "gpu-0", "said": ""}]
    return {"mesh": mesh, "nodes": nodes, "bandwidth": [sends(935.0)], **changes}


def sends(mbps):
    return {"from": "gpu-0", "to": "gpu-1", "mbps": mbps, "said": "no answer"}


def verdicts(found, wanted=WANTED):
    return {
        (row["check"], row["where"]): row["verdict"] for row in preflight.judge(found, sample_spec.parsed(**wanted))
    }


def test_what_was_ordered_passes_and_so_does_a_clock_that_only_looks_wrong_for_a_slow_answer():
    assert set(verdicts(found()).values()) == {"ok"}
    assert verdicts(found(second={"clock_off_s": 5.0, "clock_error_s": 4.0}))["clock", "gpu-1"] == "ok"


@pytest.mark.parametrize(
    ("what", "culprit"),
    [
        (found(mesh=[{"from": "gpu-1", "to": "gpu-0", "said": "denied"}]), "ssh of every pair: gpu-1 to gpu-0: denied"),
        (found(second={"address": None}), "interface of gpu-1: no eth0; it has eth0, eth1"),
        (found(second={"address": "198.51.100.7"}), "interface of gpu-1: eth0 198.51.100.7"),
        (found(first={"gpus": [GPU]}), "GPUs of gpu-0: Tesla P100-PCIE-16GB 16280 MiB instead of 2x P100"),
        (found(first={"gpus": [{**GPU, "memory_mib": 12000}] * 2}), "GPUs of gpu-0"),
        (found(first={"gpus": [{**GPU, "name": "Tesla V100-PCIE-16GB"}] * 2}), "GPUs of gpu-0"),
        (found(second={"gpus": []}), "GPUs of gpu-1: none"),
        (found(second={"gpus": [{**GPU, "driver": "375.10"}] * 2}), "driver of gpu-1: 375.10"),
        (found(second={"free_bytes": 10**9}), "disk of gpu-1: 1.0 GB free"),
        (found(second={"shm_free_bytes": 64 << 20}), "/dev/shm of gpu-1: 67 MB free instead of 268 MB"),
        (found(second={"clock_off_s": -90.0}), "clock of gpu-1: -90.0 s"),
        (found(second={"data": "def"}), "data of every node: gpu-0 abc, gpu-1 def"),
        (found(second={"port": "Address already in use"}), "port of gpu-1: Address already in use"),
        (found(bandwidth=[sends(94.0)]), "bandwidth of gpu-0 to gpu-1: 94 Mb/s instead of 1000 Mb/s"),
        (found(bandwidth=[sends(None)]), "bandwidth of gpu-0 to gpu-1: no answer"),
    ],
)
def test_what_would_waste_the_run_stops_it_and_names_the_culprit(what, culprit):
    assert culprit in preflight.sentence(preflight.judge(what, sample_spec.parsed(**WANTED)))


def test_another_image_on_one_node_or_no_answer_of_it_stops_the_run():
    rows = preflight.judge(found(), sample_spec.parsed(**{**WANTED, "images": ["sha256:1", "sha256:2"]}))
    assert "image of every node: gpu-0 sha256:1, gpu-1 sha256:2" in preflight.sentence(rows)
    silent = found()
    silent["nodes"]["gpu-1"] = None
    assert "facts of gpu-1: no answer" in preflight.sentence(preflight.judge(silent, sample_spec.parsed(**WANTED)))


@pytest.mark.parametrize(
    ("what", "row"),
    [
        (found(second={"clock_off_s": 5.0}), ("clock", "gpu-1")),
        (found(first={"gpus": [{**GPU, "driver": "410.79"}] * 2}), ("driver", "gpu-0")),
        (found(bandwidth=[sends(600.0)]), ("bandwidth", "gpu-0 to gpu-1")),
    ],
)
def test_what_is_only_worth_knowing_is_noted(what, row):
    assert verdicts(what)[row] == "note"


def test_ranks_that_read_different_configurations_or_answer_from_elsewhere_are_named_and_the_allreduce_is_timed():
    wanted = sample_spec.parsed(**WANTED)
    assert preflight.sentence(preflight.of_ranks(RANKS, wanted)) == ""
    (timed,) = [row for row in preflight.of_ranks(RANKS, wanted) if row["check"] == "allreduce"]
    assert (timed["found"], timed["wanted"]) == ("0.10 s", "243 MB summed")
    other = [{**RANKS[0], "config": "ab"}, *RANKS[1:]]
    assert "rank 0 ab, rank 1 c" in preflight.sentence(preflight.of_ranks(other, wanted))
    elsewhere = [*RANKS[:3], {**RANKS[3], "address": "10.0.0.9"}]
    assert "10.0.0.1, 10.0.0.9 instead of" in preflight.sentence(preflight.of_ranks(elsewhere, wanted))


def test_a_wrong_port_ends_the_run_before_it_trains_and_the_table_is_kept(folder):
    outcome = carry_out(folder, bandwidth=["sh", "-c", "echo 94.1"])
    assert outcome.cause == "preflight"
    assert "94 Mb/s instead of 1000 Mb/s" in outcome.reason
    assert [row["check"] for row in outcome.checks if row["verdict"] == "stop"] == ["bandwidth"] * 2
    assert json.loads((folder / "preflight.json").read_text())["seconds"] < 60
    assert not list((folder / "logdir").iterdir())


def test_links_that_were_slow_once_are_measured_again_and_stop_nothing(folder, run):
    # A round are four questions: of two links, both ends.
    busy_once = f"[ $(wc -l <{folder}/asked) -le 4 ] && echo 94.0 || echo 940.0"
    write_job(folder, bandwidth=["sh", "-c", f"echo asked >>{folder}/asked; {busy_once}"])
    assert [one["mbps"] for one in preflight.network(run())] == [940.0, 940.0]


def test_ranks_that_never_reach_each_other_end_the_run_with_what_to_look_at(folder, ended, monkeypatch):
    monkeypatch.setattr(preflight, "TOGETHER_TIMEOUT_S", 1)
    write_job(folder, preflight=["sh", "-c", "echo waiting for the others; sleep 60"])
    cause, why, lines = ended(preflight.together)
    assert (cause, lines) == ("preflight", ["waiting for the others"])
    assert "not over after 1 s" in why and "every port of eth0" in why
    assert end_run(folder)["ended"] == 0


def test_a_rank_that_cannot_use_its_gpu_ends_the_run_with_its_framework_s_words(folder):
    words = f"{UNUSABLE}gpu-1: torch: The NVIDIA driver on your system is too old (found version 11040)."
    write_job(folder, preflight=["sh", "-c", f"echo '[1,3]<stderr>:{words}'; echo others were ended; exit 1"])
    outcome = carry_out(folder)
    assert outcome.cause == "driver-too-old"
    assert "a GPU cannot be used on gpu-1: torch: The NVIDIA driver on your system is too old" in outcome.reason


def test_a_framework_without_gpus_where_some_were_ordered_is_noted():
    rows = preflight.of_ranks([{**RANKS[0], "on_gpu": False}, *RANKS[1:]], sample_spec.parsed(**WANTED))
    assert [row["where"] for row in rows if row["verdict"] == "note"] == ["rank 0"]


def test_a_preflight_that_is_skipped_leaves_its_reason(folder, run):
    write_job(folder, bandwidth=["false"], preflight_skipped="the port is being repaired")
    preflight.preflight(run())
    (row,) = json.loads((folder / "preflight.json").read_text())["rows"]
    assert (row["wanted"], row["verdict"]) == ("the port is being repaired", "note")


def test_every_node_logs_in_to_every_other_one_and_sends_to_the_next(folder, run):
    write_job(folder, addresses=["10.0.0.0", "10.0.0.1", "10.0.0.2"], names=["a", "b", "c"])
    links = preflight.mesh(run())
    assert sorted(pair["from"] + pair["to"] for pair in links) == ["ab", "ac", "ba", "bc", "ca", "cb"]
    assert {pair["said"] for pair in links} == {""}
    assert [one["from"] + one["to"] for one in preflight.bandwidth(run())] == ["ab", "bc", "ca"]


def test_a_login_that_is_refused_is_told_with_both_names(folder, run):
    write_job(folder, ssh=["sh", "-c", "echo Permission denied; exit 255", "ssh"])
    first = preflight.mesh(run())[0]
    assert first == {"from": "gpu-0", "to": "gpu-1", "said": "Permission denied"}


def with_ports(folder, **changes):
    """Let the machines be addresses of this computer, whose links are real."""
    here = {"addresses": ["127.0.0.1", "127.0.0.2"], "probe_port": free_port(), "meeting_port": MEETING_PORT}
    write_job(folder, **{**here, **changes})
    shutil.copy(AGENT / "nodes" / "links.py", folder / "agent" / "nodes" / "links.py")
    hurry(folder, "nodes/links.py", "SEND_S = 2.0", "SEND_S = 0.1")
    hurry(folder, "nodes/links.py", "QUIET_TIMEOUT_S = 20", "QUIET_TIMEOUT_S = 5")


def test_ranks_meet_at_another_port_than_one_that_is_taken(folder):
    with_ports(folder)
    one = Run(str(folder))
    with socket.create_server(("127.0.0.1", one.free_port())) as server:
        other = one.free_port()
        assert other != server.getsockname()[1]
    assert MEETING_PORT <= other < 32768
    found = set()
    for number in range(20):
        one.attempt = f"another-{number}"
        found.add(one.free_port())
    assert len(found) > 15, "each attempt begins its search elsewhere"


@pytest.mark.parametrize(
    ("way", "verdict", "found"),
    [
        ('eval "$2"', "ok", "reached by all"),
        ('case $2 in *connec[t]*) echo timed out; exit 1 ;; *) eval "$2" ;; esac', "stop", "gpu-1: timed out"),
    ],
)
def test_every_node_connects_to_the_first_ones_port_or_is_named(folder, run, way, verdict, found):
    with_ports(folder, ssh=["sh", "-c", way, "ssh"])
    row = preflight.meeting(run())
    assert row["verdict"] == verdict
    assert found in row["found"]


@pytest.mark.parametrize(
    ("said", "verdict", "found"),
    [
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/", "ok", "(Open MPI) 4.1.4"),
        ("mpirun (Open MPI) 3.0", "ok", "(Open MPI) 3.0"),
        ("mpirun (Open MPI) 2.1.1", "stop", "(Open MPI) 2.1.1"),
        ("HYDRA build details:\n    Version: 3.3.2", "stop", "HYDRA build details:"),
        ("", "stop", "exit code 0"),
    ],
)
def test_an_mpirun_that_is_too_old_or_of_others_stops_the_run_with_its_version(folder, run, said, verdict, found):
    tool = folder.parent.parent / "bin" / "mpirun"
    tool.write_text(f"#!/bin/sh\necho '{said}'\n")
    tool.chmod(0o755)
    row = preflight.open_mpi(run())
    assert (row["verdict"], row["found"]) == (verdict, found)
    assert ("mpirun of gpu-0: " in preflight.sentence([row])) is (verdict == "stop")


def test_the_version_of_mpirun_is_looked_at_before_it_starts_the_ranks(folder):
    tool = folder.parent.parent / "bin" / "mpirun"
    tool.write_text(f'#!/bin/sh\n[ "$1" = --version ] || touch {folder}/started\necho "mpirun (Open MPI) 1.10.2"\n')
    tool.chmod(0o755)
    found = carry_out(folder, preflight=["mpirun", "-np", "4"])
    assert found.reason == "mpirun of gpu-0: (Open MPI) 1.10.2 instead of Open MPI 3.0.0 or newer in container.image"
    assert not (folder / "started").exists()
