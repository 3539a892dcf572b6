"""What shows that something happens on a machine: its counters, on this computer and in files like its own."""

import os
import pty
import socket
import time

import pytest

from agent.nodes import activity
from agent.run.context import TERMINALS

STAT = """cpu  100 20 30 800 50 0 0 0 7 0
cpu0 50 10 15 400 25 0 0 0 0 0
cpu1 50 10 15 400 25 0 0 0 0 0
intr 1 2
"""
DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 9000 1 0 0 0 0 0 0 9000 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
  eth1:30000 1 0 0 0 0 0 0 4000 1 0 0 0 0 0 0
docker0: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
vethab1: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
"""


def test_processors_that_wait_for_a_disk_rest_and_every_byte_is_counted_at_the_card_where_it_leaves(tmp_path):
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "dev").write_text(DEV)
    assert activity.processors(str(tmp_path / "stat")) == [150, 1000, 2]
    assert activity.network(str(tmp_path / "dev"))["cards"] == 35200


def test_what_an_open_connection_has_sent_is_told_from_what_it_has_received():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as there, listener.accept()[0] as here:
            here.sendall(b"x" * 1000)
            there.sendall(b"x" * 50)
            deadline = time.monotonic() + 30
            while list(activity.sent_from(port).values()) != [1000]:
                assert time.monotonic() < deadline
                time.sleep(0.05)
    assert activity.sent_from(port) == {}


def test_a_terminal_shows_when_a_key_was_pressed_and_output_is_none():
    machine, program = pty.openpty()
    try:
        os.utime(os.ttyname(program), (1.0, 1.0))
        before = activity.typed(TERMINALS)
        os.write(program, b"a line of a log\n")
        os.read(machine, 100)
        assert activity.typed(TERMINALS) == before
        os.utime(os.ttyname(program), (2e9, 1.0))  # As reading a key does, which Linux notes every eight seconds.
        assert activity.typed(TERMINALS) == 2e9
    finally:
        os.close(machine)
        os.close(program)


@pytest.mark.parametrize("lost", ["stat", "net/dev", "terminals/ptmx", None])
def test_what_cannot_be_read_is_missing_and_not_nothing(tmp_path, lost):
    """Where the machine's terminals were to be mounted is a folder all the same."""
    for name, text in {"stat": STAT, "net/dev": DEV, "terminals/ptmx": "", "terminals/0": ""}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if name != lost:
            path.write_text(text)
    found = activity.reading(str(tmp_path / "terminals"), str(tmp_path))
    assert (found is None) == (lost is not None)
    (tmp_path / "stat").write_text("no numbers\n")
    assert activity.reading(TERMINALS, str(tmp_path)) is None
