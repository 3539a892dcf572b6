"""A connection whose other end is gone is given up by the kernel; quiet work on a living one goes on."""

import socket
import subprocess

import paramiko
import pytest
from silent_relay import SilentRelay
from ssh_server import SshServer

from microcluster.jobs import cluster_facts
from microcluster.remote import connection
from microcluster.remote.errors import UnreachableError
from microcluster.remote.host import Host

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
    host = Host(facts, "root", str(keys / "stack"), port=relay.port)
    yield host
    host.close()


@pytest.mark.parametrize(
    "use",
    [lambda host, file: host.send(file, f"{file}.copy"), lambda host, file: list(host.extend(file, f"{file}.copy"))],
)
def test_a_peer_that_takes_nothing_any_more_is_given_up_with_the_nodes_name(host, relay, tmp_path, monkeypatch, use):
    monkeypatch.setitem(connection.TCP_LIMITS, "TCP_USER_TIMEOUT", 1000)
    file = tmp_path / "file"
    file.write_bytes(bytes(16 * MEGABYTE))  # More than every buffer on the way.
    host.run(("true",))
    relay.silence(after_bytes=MEGABYTE)
    with pytest.raises(UnreachableError, match=r"sending .* to gpu-0 \(guest 101.*the connection was lost.*fab status"):
        use(host, file)


def test_a_quiet_peer_is_asked_and_given_up_within_two_minutes(host):
    host.run(("true",))
    opened = host._connection.transport.sock
    idle, every, most = (
        opened.getsockopt(socket.IPPROTO_TCP, limit)
        for limit in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    )
    assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert idle + every * most < 120
    assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) < 120_000


def test_quiet_work_on_a_living_link_may_last_longer_than_any_silence(host, monkeypatch):
    for limit in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT"):
        monkeypatch.setitem(connection.TCP_LIMITS, limit, 1)
    monkeypatch.setitem(connection.TCP_LIMITS, "TCP_USER_TIMEOUT", 1000)
    assert host.run(("sh", "-c", "sleep 4; echo done")).stdout == "done\n"
