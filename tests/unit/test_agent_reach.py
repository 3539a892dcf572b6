"""The port where the processes of all nodes meet: reached by every node before anything is started, or named."""

import shutil
import socket

from supervised_run import carry_out, hurry, write_job

from microcluster.remote.job import AGENT
from tools.product import free_port


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
