"""TensorBoard answers on the loopback alone, is reached through one tunnel, and lives no longer than it."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_machine import FakeMachine
from launching import transformer

from microcluster.commands.command_line import UserMistake
from microcluster.commands.tensorboard import SERVER, free_port, tunnel_argv
from microcluster.jobs.cluster_facts import ClusterFacts, Container
from tools import product

# Stands for TensorBoard: listens where it is told to, for ever.
FAKE = """
import socket, sys, time
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print(words["--host"], file=sys.stderr, flush=True)
listening = socket.create_server((words["--host"], int(words["--port"])))
time.sleep(600)
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "tensorboard").mkdir()
    (tmp_path / "tensorboard" / "__init__.py").touch()
    (tmp_path / "tensorboard" / "main.py").write_text(FAKE)
    argv = [sys.executable, "-c", SERVER.read_text(), "/data/runs/x/logdir", str(product.free_port())]
    env = {"PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        yield process
        process.kill()


def test_the_server_says_when_it_answers_and_ends_with_the_connection(server: subprocess.Popen[str]) -> None:
    assert server.stdout and server.stdin
    assert server.stdout.readline() == "ready\n"
    port = int(server.args[-1])
    socket.create_connection(("127.0.0.1", port), 5).close()
    server.stdin.close()
    assert server.wait(30) == 0
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 5)
    assert server.stderr and server.stderr.read() == "127.0.0.1\n"


def test_a_port_that_somebody_else_has_is_named_and_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        argv = [sys.executable, "-c", SERVER.read_text(), "/x", port]
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 1
    assert f"port {port} of the launcher is in use" in done.stdout


def test_tunnel_and_server_share_one_connection_that_shows_only_loopbacks(tmp_path: Path) -> None:
    job = transformer()
    cluster = ClusterFacts("local", "1f3a9c42", run="0123456789ab", container=Container("c", "r.test/i:t"), job=job)
    host = FakeMachine()
    host.key_file = str(tmp_path / "id")
    argv = tunnel_argv(host, [host], cluster, 7007)
    assert argv[argv.index("-L") + 1] == "127.0.0.1:7007:127.0.0.1:6006"
    assert "ExitOnForwardFailure=yes" in argv
    assert argv[-1].startswith("docker exec -i -e MICROCLUSTER_TOOL=tensorboard c python -c ")
    assert argv[-1].endswith(" /data/runs/0123456789ab/logdir 6006")
    bare = ClusterFacts("local", "1f3a9c42", run="0123456789ab")
    python = "/data/runs/0123456789ab/environment/bin/python"
    started = tunnel_argv(host, [host], bare, 7007)[-1]
    assert f"env MICROCLUSTER_TOOL=tensorboard {python} -c " in started, "without a container it is the run's own"


def test_what_is_no_port_is_refused_and_of_one_in_use_another_named() -> None:
    for port in ("http", "0", "70000", "-1"):
        with pytest.raises(UserMistake, match="is not a port"):
            free_port(port)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserMistake, match=f"fab tensorboard --port {port + 1}"):
            free_port(str(port))
