"""TensorBoard answers on the loopback alone, is reached through one tunnel, and lives no longer than it."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fake_machine import FakeMachine
from launching import transformer

from microcluster.commands import tensorboard as module
from microcluster.commands.tensorboard import SERVER, free_port, tunnel_argv
from microcluster.core.polling import wait_until
from microcluster.jobs.cluster_facts import ClusterFacts, Container
from microcluster.setup import environment
from microcluster.setup.errors import UserMistake


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
    bare = ClusterFacts("local", "1f3a9c42", run="0123456789ab", job=job)
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


NOISE = r"""
import sys
sys.stderr.buffer.write(b"\x1b]0;owned\x07W tensorflow \xff\x1b[2J\rready soon\n" + b"x" * 50000 + b"\nlast\n")
sys.stderr.flush()
print("\nready", flush=True)
"""


def test_what_tensorboard_writes_is_shown_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host = FakeMachine()
    host.connect = lambda: None
    cluster = ClusterFacts("local", "1f3a9c42", run="0123456789ab")
    monkeypatch.setattr(module, "find_cluster", lambda stack: cluster)
    monkeypatch.setattr(module, "open_hosts", lambda cluster: [host])
    monkeypatch.setattr(module, "tunnel_argv", lambda *words: (sys.executable, "-c", NOISE))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    assert module.tensorboard.code(stack="local", port=port) == 1
    said = capsys.readouterr()
    assert "W tensorflow \ufffd\nready soon\n" in said.err and "last\n" in said.err
    assert not set(said.err) & set("\x1b\x07\r") and "owned" not in said.err
    assert "for each of its users" in said.out


SHOWN = """#!/bin/sh
exec {python} -c 'import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])))
print("shows", sys.argv[sys.argv.index("--logdir") + 1], file=sys.stderr, flush=True)
for _ in range(2): server.accept()' "$@"
"""


@pytest.fixture
def nothing_rented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of what was fetched of a stack that is not up; no TensorBoard is on the PATH."""
    monkeypatch.setattr(module, "find_cluster", lambda stack: None)
    monkeypatch.setattr(environment, "ARTIFACTS", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path / "local"


def test_where_nothing_is_rented_a_local_tensorboard_shows_what_was_fetched_last(
    nothing_rented: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run, age in (("aaaaaaaaaaaa-00", 100), ("bbbbbbbbbbbb-00", 0)):
        (nothing_rented / run / "logdir").mkdir(parents=True)
        os.utime(nothing_rented / run / "logdir", (1e9 - age, 1e9 - age))
    program = tmp_path / "bin/tensorboard"
    program.parent.mkdir()
    program.write_text(SHOWN.format(python=sys.executable))
    program.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    done = []
    command = threading.Thread(
        target=lambda: done.append(module.tensorboard.code(stack="local", port=port)), daemon=True
    )
    command.start()
    told = []

    def is_ready() -> bool:
        told.append("".join(capsys.readouterr()))
        return f"TensorBoard: http://127.0.0.1:{port}/" in "".join(told)

    wait_until("it is ready", is_ready, timeout_s=60)
    socket.create_connection(("127.0.0.1", int(port))).close()
    command.join(60)
    assert done == [1]
    assert f"shows {nothing_rented}/bbbbbbbbbbbb-00/logdir" in "".join((*told, *capsys.readouterr()))


def test_without_a_local_tensorboard_the_next_command_is_said(
    nothing_rented: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert module.tensorboard.code(stack="local", port="16006") == 2
    assert "no curves of it were fetched" in capsys.readouterr().err
    (nothing_rented / "aaaaaaaaaaaa-00/logdir").mkdir(parents=True)
    if shutil.which("tensorboard") is None:
        assert module.tensorboard.code(stack="local", port="16006") == 1
        assert "pipx install tensorboard" in capsys.readouterr().err
