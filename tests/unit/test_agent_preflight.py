"""The preflight: what was found, compared with what was ordered, who is named, and the port where all nodes meet."""

import json
import shutil
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
from supervised_run import FACTS, carry_out, end_run, hurry, write_job

from agent.supervise import preflight
from microcluster.remote import job as remote_job
from microcluster.remote.job import AGENT
from tools.product import free_port

WANTED = {
    "names": ["gpu-0", "gpu-1"],
    "addresses": ["10.0.0.0", "10.0.0.1"],
    "images": ["sha256:1", "sha256:1"],
    "interface": "eth0",
    "slots": 2,
    "ranks": ["10.0.0.0", "10.0.0.0", "10.0.0.1", "10.0.0.1"],
    "gpu": "P100",
    "gpu_memory_gb": 16,
    "driver": 418,
    "port_speed_mbps": 1000,
    "probe_port": 4445,
    "disk_bytes": 10**10,
    "model_bytes": 243_000_000,
}
GPU = {"name": "Tesla P100-PCIE-16GB", "memory_mib": 16280, "driver": "440.118.02", "utilisation": 0}


def node(private, **changes):
    return {**FACTS, "address": private, "gpus": [GPU, GPU], "clock_off_s": 0.1, "clock_error_s": 0.2, **changes}


def found(first=None, second=None, **changes):
    nodes = {"gpu-0": node("10.0.0.0", **(first or {})), "gpu-1": node("10.0.0.1", **(second or {}))}
    mesh = [{"from": "gpu-0", "to": "gpu-1", "said": ""}, {"from": "gpu-1", "to": "gpu-0", "said": ""}]
    return {"mesh": mesh, "nodes": nodes, "bandwidth": [sends(935.0)], **changes}


def sends(mbps):
    return {"from": "gpu-0", "to": "gpu-1", "mbps": mbps, "said": "no answer"}


def verdicts(found, wanted=WANTED):
    return {(row["check"], row["where"]): row["verdict"] for row in preflight.judge(found, SimpleNamespace(**wanted))}


def test_what_was_ordered_passes_and_so_does_a_clock_that_only_looks_wrong_for_a_slow_answer():
    assert set(verdicts(found()).values()) == {"ok"}
    assert verdicts(found(second={"clock_off_s": 5.0, "clock_error_s": 4.0}))["clock", "gpu-1"] == "ok"


@pytest.mark.parametrize(
    ("what", "culprit"),
    [
        (
            found(mesh=[{"from": "gpu-1", "to": "gpu-0", "said": "Permission denied"}]),
            "gpu-1 to gpu-0: Permission denied",
        ),
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
    assert culprit in preflight.sentence(preflight.judge(what, SimpleNamespace(**WANTED)))


def test_another_image_on_one_node_or_no_answer_of_it_stops_the_run():
    rows = preflight.judge(found(), SimpleNamespace(**{**WANTED, "images": ["sha256:1", "sha256:2"]}))
    assert "image of every node: gpu-0 sha256:1, gpu-1 sha256:2" in preflight.sentence(rows)
    silent = found()
    silent["nodes"]["gpu-1"] = None
    assert "facts of gpu-1: no answer" in preflight.sentence(preflight.judge(silent, SimpleNamespace(**WANTED)))


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


def test_ranks_that_read_different_configurations_are_named():
    ranks = [
        {"rank": n, "address": f"10.0.0.{n // 2}", "config": "ab" if n else "cd", "allreduce_s": 1} for n in range(4)
    ]
    said = preflight.sentence(preflight.of_ranks(ranks, SimpleNamespace(**WANTED)))
    assert "rank 0 cd, rank 1 ab" in said


def test_a_wrong_port_ends_the_run_before_it_trains_and_the_table_is_kept(folder):
    outcome = carry_out(folder, bandwidth=["sh", "-c", "echo 94.1"])
    assert outcome.cause == "preflight"
    assert "94 Mb/s instead of 1000 Mb/s" in outcome.reason
    assert [row["check"] for row in outcome.checks if row["verdict"] == "stop"] == ["bandwidth"] * 2
    assert json.loads((folder / "preflight.json").read_text())["seconds"] < 60


def test_links_that_were_slow_once_are_measured_again_and_stop_nothing(folder):
    # A round are four questions: of two links, both ends.
    busy_once = f"[ $(wc -l <{folder}/asked) -le 4 ] && echo 94.0 || echo 940.0"
    outcome = carry_out(folder, bandwidth=["sh", "-c", f"echo asked >>{folder}/asked; {busy_once}"])
    assert outcome.state == "finished"
    assert {row["found"] for row in outcome.checks if row["check"] == "bandwidth"} == {"940 Mb/s"}


def test_a_login_that_is_refused_ends_the_run_with_both_names(folder):
    outcome = carry_out(folder, ssh=["sh", "-c", "echo Permission denied; exit 255", "ssh"], place=["true"])
    assert "gpu-0 to gpu-1: Permission denied" in outcome.reason


def test_ranks_that_never_reach_each_other_end_the_run_with_what_to_look_at(folder):
    hurry(folder, "supervise/preflight.py", "TOGETHER_TIMEOUT_S = 300", "TOGETHER_TIMEOUT_S = 1")
    outcome = carry_out(folder, preflight=["sh", "-c", "echo waiting for the others; sleep 60"])
    assert outcome.cause == "preflight"
    assert "not over after 1 s" in outcome.reason and "every port of eth0" in outcome.reason
    assert outcome.last_lines == ("waiting for the others",)
    assert end_run(folder)["ended"] == 0


def test_a_preflight_that_is_skipped_leaves_its_reason(folder):
    outcome = carry_out(folder, bandwidth=["false"], preflight_skipped="the port is being repaired")
    assert outcome.state == "finished"
    assert outcome.checks[0]["wanted"] == "the port is being repaired"


def test_the_sender_measures_what_has_arrived():
    port = str(free_port())
    words = [sys.executable, str(remote_job.AGENT), "nodes.links"]
    receiver = subprocess.Popen([*words, "receive", "127.0.0.1", port, "2"])
    sent = subprocess.run(
        [*words, "send", "127.0.0.1", port, "2"], capture_output=True, text=True, check=True, timeout=60
    )
    assert receiver.wait(60) == 0
    assert float(sent.stdout) > 1


def test_every_node_logs_in_to_every_other_one_and_sends_to_the_next(folder):
    three = {"addresses": ["10.0.0.0", "10.0.0.1", "10.0.0.2"], "names": ["a", "b", "c"], "images": ["sha256:1"] * 3}
    carry_out(folder, **three)
    table = json.loads((folder / "preflight.json").read_text())
    assert sorted(pair["from"] + pair["to"] for pair in table["mesh"]) == ["ab", "ac", "ba", "bc", "ca", "cb"]
    assert sorted(one["from"] + one["to"] for one in table["bandwidth"]) == ["ab", "bc", "ca"]


def test_the_allreduce_that_was_timed_is_in_the_table(folder):
    rows = [row for row in carry_out(folder, model_bytes=243_000_000).checks if row["check"] == "allreduce"]
    assert [(row["found"], row["wanted"]) for row in rows] == [("0.10 s", "243 MB summed")]


def rows_of(folder, **changes):
    here = {"addresses": ["127.0.0.1", "127.0.0.2"], "probe_port": free_port(), "meeting_port": free_port()}
    write_job(folder, **{**here, **changes})
    shutil.copy(AGENT / "nodes" / "links.py", folder / "agent" / "nodes" / "links.py")
    hurry(folder, "nodes/links.py", "SEND_S = 2.0", "SEND_S = 0.1")
    outcome = carry_out(folder)
    return {row["check"]: row for row in outcome.checks}, outcome


def test_every_node_connects_to_the_first_ones_port(folder):
    rows, _ = rows_of(folder)
    assert rows["meeting port"]["verdict"] == "ok"


def test_a_port_that_is_taken_stops_the_run_with_its_node(folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        rows, outcome = rows_of(folder, meeting_port=server.getsockname()[1])
    assert rows["meeting port"]["verdict"] == "stop"
    assert "meeting port of gpu-0: gpu-0: [Errno 98] Address already in use" in outcome.reason


def test_a_node_that_does_not_reach_it_is_named(folder):
    no_way = 'case $2 in *connec[t]*) echo timed out; exit 1 ;; *) eval "$2" ;; esac'
    _, outcome = rows_of(folder, ssh=["sh", "-c", no_way, "ssh"])
    assert "gpu-1: timed out" in outcome.reason
