"""What a machine says of itself: recorded answers of nvidia-smi, and a tool of ours that answers slowly, wrongly or never."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import sample_spec
from test_agent_preflight import WANTED, found

from agent.nodes import node_facts
from agent.supervise import preflight
from tests.recorded import Recorded, recorded

FIRST, SECOND = "Tesla P100-PCIE-16GB, 16280, 440.118.02, 97", "Tesla P100-PCIE-16GB, 16280, 440.118.02, 99"


@pytest.fixture
def says(tmp_path, monkeypatch):
    """Return what lets nvidia-smi print these lines, and others when it is asked for processes; it writes down each question."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def let(*lines, holders="1234", code=0):
        program, rows = tmp_path / "nvidia-smi", "".join(f"echo '{line}'; " for line in lines)
        apps = f"echo '{holders}'; " if holders else ""
        program.write_text(
            f'#!/bin/sh\necho "$1" >>{tmp_path}/asked\ncase $1 in *compute-apps*) {apps}exit 0 ;; esac\n{rows}exit {code}\n'
        )
        program.chmod(0o755)

    return let


def read(answer: Recorded) -> dict:
    return node_facts.read_gpus(answer.exit_code, answer.output.decode("utf-8", "replace"))


@recorded("nvidia_smi")
def test_a_recorded_answer_of_nvidia_smi_is_read_as_expected(answer):
    read_of = read(answer)
    said = [{key: value for key, value in row.items() if value not in (None, "")} for row in read_of["gpus"]]
    assert said == answer.expected.get("gpus", [])
    assert read_of["gpu_words"] == answer.expected.get("words", "")[: node_facts.LONGEST_LINE]
    assert read_of["gpu_code"] == answer.exit_code


@recorded("nvidia_smi")
def test_a_recorded_answer_passes_the_preflight_is_noted_or_stops_it(answer):
    if "verdict" not in answer.expected:
        return
    wanted = sample_spec.parsed(**{**WANTED, **answer.asked})
    rows = [
        row
        for row in preflight.judge(found(first=read(answer), second=read(answer)), wanted)
        if row["where"] == "gpu-0"
    ]
    verdicts = [row["verdict"] for row in rows if row["check"] in ("GPUs", "nvidia-smi")]
    assert [verdict for verdict in ("stop", "note", "ok") if verdict in verdicts][0] == answer.expected["verdict"]


def test_a_gpu_that_requires_a_reset_stops_with_its_word_and_the_next_command():
    gpus = node_facts.read_gpus(0, f"{FIRST}\nTesla P100-PCIE-16GB, 16280, 440.118.02, [GPU requires reset]\n")
    said = preflight.sentence(preflight.judge(found(first=gpus), sample_spec.parsed(**WANTED)))
    assert (
        "16280 MiB, Tesla P100-PCIE-16GB 16280 MiB; [GPU requires reset]; restart it: fab ssh gpu-0 -- sudo reboot"
        in said
    )


def test_a_driver_that_answers_nothing_stops_with_its_words_and_its_code():
    gpus = node_facts.read_gpus(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    said = preflight.sentence(preflight.judge(found(first=gpus), sample_spec.parsed(**WANTED)))
    assert "GPUs of gpu-0: none; NVIDIA-SMI has failed" in said and "(nvidia-smi, exit code 9); restart it" in said


def test_words_of_a_hostile_tool_are_cleaned_and_limited():
    read_of = node_facts.read_gpus(
        0, "\x1b[31mred, \x00" + "x" * 10**5 + "\n" + "a, 1, b, \x1b]0;2\x07\n" * 1000 + "9" * 5000
    )
    assert len(read_of["gpus"]) < 100 and read_of["gpus"][0]["utilisation"] is None
    assert 200 < len(read_of["gpu_words"]) <= node_facts.LONGEST_LINE and read_of["gpu_words"].isprintable()


def test_a_gpu_without_a_process_does_nothing_whatever_it_shows(says, monkeypatch):
    monkeypatch.setattr(node_facts, "ALL_PROCESSES", os.stat("/proc/self/ns/pid").st_ino)
    says(FIRST, SECOND, holders="")
    assert [one["utilisation"] for one in node_facts.gpu_facts()["gpus"]] == [0, 0]
    says(FIRST, SECOND)
    assert [one["utilisation"] for one in node_facts.gpu_facts()["gpus"]] == [97, 99]


def test_in_a_container_where_no_process_is_named_a_gpu_at_work_counts(says, monkeypatch):
    monkeypatch.setattr(node_facts, "ALL_PROCESSES", 1)
    says(FIRST, holders="")
    assert [one["utilisation"] for one in node_facts.gpu_facts()["gpus"]] == [97]


@pytest.mark.parametrize(
    ("order", "by_queue", "own"),
    [
        ((1, ""), "", [10]),
        ((4, ""), "", [10, 11, 12]),
        ((1, "2"), "", [12]),
        ((2, ""), "1,2", [11, 12]),
        ((1, "0"), "1,2", [10]),
        ((1, "GPU-22ff44fc-8a77-ac52-3b57-eef852c15bfd"), "", [10, 11, 12]),
        ((1, "7"), "", [10, 11, 12]),
    ],
)
def test_only_the_runs_own_gpus_are_looked_at(says, monkeypatch, order, by_queue, own):
    says(*(f"Tesla P100-PCIE-16GB, 16280, 440.118.02, {used}" for used in (10, 11, 12)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", by_queue)
    assert [one["utilisation"] for one in node_facts.gpu_facts(5, *order)["gpus"]] == own


def played(folder, **spec):
    """Return a run on this machine as its facts are asked for, with the argument words of the agent's program alone."""
    known = {"interface": "lo", "data": None, "probe_port": 0, "shared": None, "slots": 1}
    runtime = SimpleNamespace(terminals="/dev/pts")
    words = {"folder": str(folder), "runtime": runtime, "program": lambda module, *arguments: arguments}
    return SimpleNamespace(spec=sample_spec.parsed(**{**known, **spec}), **words)


@pytest.mark.parametrize(("visible", "own"), [({}, [10]), ({"CUDA_VISIBLE_DEVICES": "2"}, [12])])
def test_a_node_of_a_run_shows_the_runs_own_gpus(says, tmp_path, capsys, visible, own):
    says(*(f"Tesla P100-PCIE-16GB, 16280, 440.118.02, {used}" for used in (10, 11, 12)))
    run = played(tmp_path, processes=[sample_spec.process(environment=visible)])
    node_facts.main(*node_facts.argv_of(run))
    assert [one["utilisation"] for one in json.loads(capsys.readouterr().out)["gpus"]] == own


def test_the_preflight_waits_longer_than_the_slowest_tool_that_was_seen(tmp_path):
    run, limits = played(tmp_path, names=["gpu-0"], addresses=["10.0.0.0"]), []

    def ask(words, limit_s, address, marked):
        limits.append((int(words[6]), limit_s))
        return 1, ""

    run.ask = ask
    assert preflight.nodes(run) == {"gpu-0": None}
    ((of_the_tool, of_the_answer),) = limits
    assert 30 < of_the_tool < of_the_answer


def test_gpus_at_rest_are_asked_once(says, tmp_path):
    says("Tesla P100-PCIE-16GB, 16280, 440.118.02, 0")
    node_facts.gpu_facts()
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


def test_no_second_nvidia_smi_is_started_while_one_hangs(tmp_path, monkeypatch):
    (tmp_path / "lock").write_text("")
    monkeypatch.setattr(node_facts, "ONE_AT_A_TIME", str(tmp_path / "lock"))
    argv = (sys.executable, "-c", f"import os, time; open({str(tmp_path / 'begun')!r}, 'a').write('x'); time.sleep(60)")
    hung, kill = [], subprocess.Popen.kill

    def in_vain(child):
        hung.append(child)  # As a process in D state takes it.

    monkeypatch.setattr(subprocess.Popen, "kill", in_vain)
    assert node_facts.ask_alone(argv, time.monotonic() + 2)[0] == node_facts.TOO_SLOW
    assert node_facts.ask_alone(argv, time.monotonic() + 0.3) == (node_facts.TOO_SLOW, node_facts.HANGS)
    assert (tmp_path / "begun").read_text() == "x"
    kill(hung[0])
    hung[0].wait()
    assert node_facts.ask_alone(("echo", "back"), time.monotonic() + 5) == (0, "back\n")


def test_a_tool_that_hangs_leaves_the_other_facts(tmp_path, says, monkeypatch, capsys):
    says(FIRST)
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    node_facts.main("lo", str(tmp_path), str(tmp_path), "0", "", "/dev/pts", "1", "2", "")
    facts = json.loads(capsys.readouterr().out)
    assert (facts["gpus"], facts["gpu_code"], facts["gpu_words"]) == ([], 124, "no answer after 1 s")
    assert facts["free_bytes"] > 0 and facts["address"] == "127.0.0.1"


def test_shared_memory_is_what_is_free(tmp_path, capsys):
    room = os.statvfs("/dev/shm")
    node_facts.main("lo", str(tmp_path), str(tmp_path), "0", "", "/dev/pts", "15", "2", "")
    facts = json.loads(capsys.readouterr().out)
    assert abs(facts["shm_free_bytes"] - room.f_bavail * room.f_frsize) < 1 << 28


def test_a_network_stands_for_the_card_of_each_machine(monkeypatch):
    cards = {"eth10": "198.51.100.7", "enP1p1s0f0": "10.1.2.3", "br-ex": None}
    monkeypatch.setattr(node_facts, "interfaces", lambda: sorted(cards))
    monkeypatch.setattr(node_facts, "address_or_none", cards.get)
    assert [node_facts.card_of(name) for name in ("10.1.0.0/16", "eth1", "172.16.0.0/12")] == [
        "enP1p1s0f0",
        "eth1",
        "172.16.0.0/12",
    ]
    told = {
        "NCCL_SOCKET_IFNAME": "=10.1.0.0/16",
        "GLOO_SOCKET_IFNAME": "10.1.0.0/16",
        "PATH": "/bin",
        "TP_SOCKET_IFNAME": "eth1",
    }
    node_facts.name_cards(told)
    assert told == {
        "NCCL_SOCKET_IFNAME": "=enP1p1s0f0",
        "GLOO_SOCKET_IFNAME": "enP1p1s0f0",
        "PATH": "/bin",
        "TP_SOCKET_IFNAME": "eth1",
    }


@pytest.mark.parametrize("card", ["h200", "h100"])
def test_a_real_card_was_asked_as_it_is_asked_today(card):
    seen = json.loads((Path(__file__).parents[1] / "on_gpu" / "recorded" / card / "nvidia_smi.json").read_text())
    assert seen["the agent's"]["argv"] == list(node_facts.GPU_ARGV)
