"""Which user of this computer is at the other end of a connection over the loopback, as the kernel knows it."""

import os
import socket
import time
from collections.abc import Iterator

import pytest

from microcluster.accounts.shared import plugin_server as server
from microcluster.accounts.shared.plugin_server import user_of


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def peer_of(connection: socket.socket) -> str:
    return "ipv4:{}:{}".format(*connection.getsockname())


def test_the_user_of_a_living_connection_is_known(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as client, listener.accept()[0]:
        assert user_of(peer_of(client), port) == os.geteuid()
        assert user_of(peer_of(client), port + 1) is None, "a connection of theirs to another port"


@pytest.mark.parametrize("has_read", [True, False])
def test_a_connection_that_was_closed_is_nobodys(listener: socket.socket, has_read: bool) -> None:
    """The kernel says that a closed socket is root's, and root may call."""
    port = listener.getsockname()[1]
    client = socket.create_connection(("127.0.0.1", port))
    peer = peer_of(client)
    with listener.accept()[0] as served:
        client.sendall(b"a call")
        if has_read:
            served.recv(100)
        client.close()
        time.sleep(0.05)
        assert user_of(peer, port) is None


@pytest.mark.parametrize(
    "peer", ["ipv4:127.0.0.2:9000", "ipv6:%5B::1%5D:9000", "ipv6:[::ffff:127.0.0.1]:9000", "unix:/tmp/x", "unknown", ""]
)
def test_what_is_no_connection_over_the_loopback_is_nobodys(peer: str) -> None:
    assert user_of(peer, 9001) is None


def test_where_the_kernel_does_not_say_nobody_may_call(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)) as client, listener.accept()[0]:
        monkeypatch.setattr(server, "SOCK_DIAG", 99)
        assert user_of(peer_of(client), port) is None
