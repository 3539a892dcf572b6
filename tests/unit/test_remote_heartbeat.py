"""A connection that goes silent is given up and named, whatever was running on it; quiet work on a living one goes on."""

import subprocess
import threading

import paramiko
import pytest
from silent_relay import SilentRelay
from ssh_server import SshServer

from microcluster.jobs import cluster_facts
from microcluster.remote.errors import UnreachableError
from microcluster.remote.heartbeat import Patience
from microcluster.remote.host import Host

SHORT = Patience(ask_every_s=0.25, unanswered=8)
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "stack"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name], check=True)
    return folder


@pytest.fixture
def relay(keys):
    host_key, stack = (paramiko.Ed25519Key.from_private_key_file(str(keys / name)) for name in ("host", "stack"))
    server = SshServer(host_key, stack)
    relay = SilentRelay(server.port)
    yield relay
    relay.close()
    server.close()


@pytest.fixture
def host(keys, relay):
    facts = cluster_facts.Host("gpu-0", "101", "127.0.0.1", "10.112.7.2", (keys / "host.pub").read_text().strip())
    host = Host(facts, "root", str(keys / "stack"), port=relay.port, patience=SHORT)
    yield host
    host.close()


def run_long(host, relay, file):
    threading.Timer(0.3, relay.silence).start()
    host.run(("sleep", "60"), timeout_s=50)


def send(host, relay, file):
    relay.silence(after_bytes=MEGABYTE)
    host.send(file, f"{file}.copy")


def extend(host, relay, file):
    relay.silence(after_bytes=MEGABYTE)
    list(host.extend(file, f"{file}.copy"))


def bring(host, relay, file):
    relay.silence(after_bytes=MEGABYTE)
    list(host.pieces(str(file), 0, file.stat().st_size))


@pytest.mark.parametrize("use", [run_long, send, extend, bring])
def test_a_link_that_goes_silent_is_reported_with_the_nodes_name_whatever_is_running(host, relay, tmp_path, use):
    file = tmp_path / "file"
    file.write_bytes(bytes(16 * MEGABYTE))  # More than every buffer on the way.
    host.run(("true",))
    with pytest.raises(UnreachableError, match=r" (on|of|to) gpu-0 \(guest 101.*silent for 2 s.*fab status"):
        use(host, relay, file)


def test_a_link_that_went_silent_while_idle_is_noticed_by_the_next_command(host, relay):
    host.run(("true",))
    relay.silence()
    host._heartbeat._transport.join(30)
    assert host._heartbeat.silent
    assert not host._heartbeat._transport.is_active()


def test_quiet_work_on_a_living_link_may_last_longer_than_any_silence(host):
    assert host.run(("sh", "-c", f"sleep {2 * SHORT.silent_s}; echo done")).stdout == "done\n"


def test_a_silent_link_is_reported_within_two_minutes():
    assert Patience().silent_s + Patience().ask_every_s < 120
