"""The emulator's own commands: start, stop, status, reset, and what they say when something is in the way."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import SoftLayer

from emulator import cli
from emulator.shared import process
from emulator.softlayer.account import Account
from emulator.softlayer.settings import Settings
from tests.integration.emulator_commands import Commands
from tests.unit.emulated import template

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Commands]:
    commands = Commands(tmp_path / "emulator")
    yield commands
    commands.run("stop")


def test_starting_and_stopping_twice_is_fine_and_the_clients_file_is_private(emulator):
    assert emulator.run("start").returncode == 0
    config = emulator.state / "softlayer.conf"
    assert config.stat().st_mode & 0o777 == 0o600
    assert f"endpoint_url = http://127.0.0.1:{emulator.port}/xmlrpc/v3.1/" in config.read_text()
    again = emulator.run("start")
    assert (again.returncode, "running already" in again.stdout) == (0, True)
    assert json.loads(emulator.run("status", "--json").stdout)["running"] is True
    assert emulator.run("stop").returncode == 0
    stopped = emulator.run("stop")
    assert (stopped.returncode, "not running" in stopped.stdout) == (0, True)
    assert json.loads(emulator.run("status", "--json").stdout)["running"] is False


def test_each_start_makes_a_new_key_as_ports_change_hands(emulator):
    keys = []
    for _ in range(2):
        assert emulator.run("start").returncode == 0
        keys.append((emulator.state / "authorization").read_text())
        assert keys[-1].split()[-1] in (emulator.state / "softlayer.conf").read_text()
        emulator.run("stop")
    assert keys[0] != keys[1]


def test_a_taken_port_is_a_sentence_that_says_who_has_it(emulator):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for command in ("start", "serve"):
            refused = emulator.run(command, port=port)
            assert refused.returncode == 1
            assert f"127.0.0.1:{port}" in refused.stderr
            assert f"process {os.getpid()}" in refused.stderr
            assert "Traceback" not in refused.stderr


def test_reset_leaves_nothing_whether_the_server_runs_or_not(emulator):
    emulator.run("start")
    assert emulator.run("reset").returncode == 0
    assert not emulator.state.exists()
    assert emulator.run("reset").returncode == 0
    assert not emulator.state.exists()


def test_a_ctrl_c_while_the_server_starts_is_a_sentence(emulator, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "start", interrupted)
    options = ["--state", str(emulator.state), "--port", str(emulator.port), "--machines", "none"]
    assert cli.main(["start", *options]) == cli.INTERRUPTED
    assert "python -m emulator status" in capsys.readouterr().err


def test_waiting_for_a_starting_server_does_not_take_its_lock(emulator, monkeypatch):
    def tried(_):
        raise AssertionError("for that moment the server would be refused")

    settings = Settings(state=emulator.state, port=emulator.port, machines="none")
    with monkeypatch.context() as patch:
        patch.setattr(process, "running_pid", tried)
        options = ["--state", str(settings.state), "--port", str(settings.port), "--machines", "none"]
        assert process.start(settings, options)["running"]
    assert process.running_pid(settings) == int((settings.state / process.PID_FILE).read_text())


def test_a_signal_before_the_server_handles_any_still_ends_it():
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["stopped"], done.stderr


SIGNALLED = """
import os, signal
from emulator.shared import server

class MachineReconciler:
    def start(self):
        os.kill(os.getpid(), signal.SIGTERM)
    def stop(self):
        print("stopped")

server.serve(lambda *_: None, [], MachineReconciler())
"""
HOLDER = """
import pathlib, signal, sys
from emulator.shared import process
from emulator.shared.settings import Settings
signal.signal(signal.SIGTERM, signal.SIG_IGN)
kept = process.claim(Settings(state=pathlib.Path(sys.argv[1])))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_server_that_does_not_end_is_named_with_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 0.2)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], cwd=ROOT, **pipes) as holder:
        holder.stdout.readline()
        with pytest.raises(process.ProcessError, match=f"process {holder.pid}.*0.2 s. Look into .*emulator.log"):
            process.stop(Settings(state=tmp_path))
        holder.stdin.close()


def test_two_accounts_have_two_numbers_and_each_keeps_its_own(emulator, tmp_path):
    folders = (emulator.state, tmp_path / "another", emulator.state)
    numbers = [Account(Settings(state=folder)).id for folder in folders]
    assert numbers[0] == numbers[2] != numbers[1]


def test_an_invoice_is_written_from_a_running_or_stopped_account(emulator):
    absent = emulator.run("invoice")
    assert (absent.returncode, "There is no account" in absent.stderr) == (1, True)
    emulator.run("start")
    client = SoftLayer.create_client_from_env(config_file=str(emulator.state / "softlayer.conf"))
    client.call("Virtual_Guest", "createObject", template("gpu-0"))
    running = json.loads(emulator.run("invoice", "--json").stdout)
    assert [item["name"] for item in running["items"]] == ["gpu-0.test-1f3a9c42.microcluster"]
    assert running["bill"] == json.loads(emulator.run("status", "--json").stdout)["bill"] == "4.50"
    emulator.run("stop")
    assert json.loads(emulator.run("invoice", "--json").stdout)["bill"] == "4.50"
    assert json.loads(emulator.run("invoice", "--at", "2020-01-01", "--json").stdout)["items"] == []
    assert "4.496" in emulator.run("invoice").stdout
    assert emulator.run("invoice", "--at", "soon").returncode == 2
