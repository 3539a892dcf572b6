"""One rank in its wrapper, as real processes: mpirun sees the same end, and the machine keeps a word of it."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from supervised_run import RENAMED

from agent.launch import rank_wrapper
from agent.nodes import node_facts
from microcluster.core.polling import wait_until
from microcluster.remote.job import AGENT


def ended(folder: Path, *command: str) -> tuple[int, list[dict[str, object]]]:
    """Return how the wrapper ended and what words it left."""
    words = folder / "ranks_ended.jsonl"
    argv = (sys.executable, AGENT, "launch.rank_wrapper", str(words), *command)
    code = subprocess.run(argv, env={**os.environ, "OMPI_COMM_WORLD_RANK": "3"}, timeout=30, check=False).returncode
    lines = words.read_text().splitlines() if words.exists() else []
    return code, [{key: value for key, value in json.loads(line).items() if key != "t"} for line in lines]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE], ids=lambda number: number.name)
def test_a_rank_that_a_signal_ended_is_noted_and_ends_its_wrapper_by_the_same_signal(tmp_path, number):
    assert ended(tmp_path, "sh", "-c", f"kill -{number.value} $$") == (-number, [{"rank": 3, "signal": number.value}])


@pytest.mark.parametrize(
    ("does", "code", "words"),
    [
        ("exit 3", 3, [{"exit_code": 3}]),
        ("exit 0", 0, []),
        ("trap 'exit 1' TERM; kill -TERM $PPID; kill -TERM $$; sleep 5", 1, []),
        ("trap 'exit 0' TERM; kill -TERM $PPID; sleep 5", 0, [{"told": 15}]),
    ],
    ids=["failed", "well", "told to end with its group", "told to end and may not be done"],
)
def test_the_exit_code_of_a_rank_is_passed_on_and_noted_where_it_says_something(tmp_path, does, code, words):
    assert ended(tmp_path, "sh", "-c", does) == (code, [{"rank": 3, **word} for word in words])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_rank_does_not_outlive_its_wrapper_that_alone_was_told_to_end(tmp_path, number):
    words, alive = tmp_path / "ranks_ended.jsonl", tmp_path / "alive"
    os.mkfifo(alive)
    rank = ("sh", "-c", f"exec > {alive}; echo up; exec sleep 90")
    argv = (sys.executable, AGENT, "launch.rank_wrapper", str(words), *rank)
    wrapper = subprocess.Popen(argv, env={**os.environ, "OMPI_COMM_WORLD_RANK": "3"})
    with alive.open() as reading:
        assert reading.readline() == "up\n"
        wrapper.send_signal(number)
        assert select.select([reading], [], [], 30)[0]  # It has an end once the rank, which held it open, is gone.
    assert wrapper.wait(30) == -number
    assert not words.exists()


def test_a_disk_without_room_does_not_change_how_a_rank_ended(tmp_path):
    argv = (sys.executable, AGENT, "launch.rank_wrapper", "/dev/full", "sh", "-c", "exit 3")
    done = subprocess.run(argv, env={**os.environ, "OMPI_COMM_WORLD_RANK": "3"}, timeout=30, check=False)
    assert done.returncode == 3


def is_gone(daemon):
    return not Path("/proc", daemon.read_text()).exists()


def test_what_a_rank_leaves_behind_ends_with_its_wrapper_which_still_ends_as_the_rank_did(tmp_path):
    daemon = tmp_path / "daemon"
    assert ended(tmp_path, sys.executable, "-c", RENAMED, str(daemon), "0") == (0, [])
    assert is_gone(daemon)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_what_a_rank_leaves_behind_does_not_outlive_a_wrapper_that_was_ended(tmp_path, number):
    daemon = tmp_path / "daemon"
    argv = (sys.executable, AGENT, "launch.rank_wrapper", str(tmp_path / "words"), sys.executable, "-c", RENAMED)
    wrapper = subprocess.Popen((*argv, str(daemon), "300"), start_new_session=True)
    wait_until("the daemon", daemon.exists, timeout_s=60, every_s=0.05)
    os.killpg(wrapper.pid, number)
    assert wrapper.wait(60) == -number
    wait_until("the daemon's end", lambda: is_gone(daemon), timeout_s=60, every_s=0.05)


def test_a_rank_is_told_its_own_machines_card_where_a_network_was_given(monkeypatch):
    monkeypatch.setattr(node_facts, "interfaces", lambda: ["br-ex", "ens3"])
    monkeypatch.setattr(node_facts, "address_or_none", {"br-ex": "198.51.100.7", "ens3": "10.1.2.3"}.get)
    monkeypatch.setattr(rank_wrapper, "run", lambda words_file, argv: os.environ["NCCL_SOCKET_IFNAME"])
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "=10.1.0.0/16")
    assert rank_wrapper.main("words", "true") == "=ens3"
