"""Host against an ssh server on loopback: pinned host keys, the stack's key only, quoting, files put at once."""

import copy
import gc
import socket
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import paramiko
import pytest
import ssh_server
from hypothesis import given, settings
from hypothesis import strategies as st
from ssh_server import Server, SshServer

from microcluster.core.polling import wait_until
from microcluster.jobs import cluster_facts
from microcluster.remote import connection, openssh
from microcluster.remote import host as hosts
from microcluster.remote import parallel as on_all_hosts
from microcluster.remote.errors import CommandError, LoginRefusedError, RemoteError, TooSlowError, UnreachableError
from microcluster.remote.host import Host
from microcluster.remote.openssh import login_host, ssh_argv

SOON_GIVEN_UP = ("-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=1")
WORD = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=30)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Return the private key files of a host, of another host, of the stack and of a stranger."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "other", "stack", "stranger"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name], check=True)
    return folder


@pytest.fixture(scope="module")
def server(keys):
    server = SshServer(load(keys, "host"), load(keys, "stack"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def pinned(server, keys):
    """Return the host as a machine that we rented."""
    host = Host(facts(keys, "host"), "root", str(keys / "stack"), port=server.port)
    yield host
    host.close()


@pytest.fixture(scope="module")
def named(server, keys):
    """Return the host as one that a person names, which OpenSSH reaches."""
    (keys / "known").write_text(f"[127.0.0.1]:{server.port} {(keys / 'host.pub').read_text()}")
    lines = ("Host gpu-0", "HostName 127.0.0.1", f"Port {server.port}", f"IdentityFile {keys / 'stack'}")
    (keys / "config").write_text("\n ".join((*lines, f"UserKnownHostsFile {keys / 'known'}\n")))
    host = login_host(str(keys / "config"))
    yield host
    host.close()


@pytest.fixture(scope="module", params=["pinned", "named"])
def host(request):
    return request.getfixturevalue(request.param)


def another(host):
    """Return the same host without a connection."""
    other = copy.copy(host)
    other._connection = None
    return other


def load(keys, name):
    return paramiko.Ed25519Key.from_private_key_file(str(keys / name))


def facts(keys, name):
    return cluster_facts.HostFacts(
        "gpu-0", "101", "127.0.0.1", "10.112.7.2", (keys / f"{name}.pub").read_text().strip()
    )


def test_an_interrupted_upload_continues_where_it_stopped(host, tmp_path):
    local, there = tmp_path / "local", tmp_path / "new" / "there"
    local.write_bytes(bytes(range(256)) * 4000)
    assert list(host.extend(local, str(there)))[-1] == local.stat().st_size
    assert there.read_bytes() == local.read_bytes()
    there.write_bytes(local.read_bytes()[:600_000])
    assert list(host.extend(local, str(there)))[0] == 600_000
    assert there.read_bytes() == local.read_bytes()


def test_an_upload_onto_a_full_disk_says_so(host, tmp_path):
    (tmp_path / "local").write_bytes(bytes(1000))
    with pytest.raises(CommandError, match="No space left on device"):
        list(host.extend(tmp_path / "local", "/dev/full"))


def test_a_command_gets_its_words_and_input_and_returns_its_exit_code(host):
    done = host.run(("sh", "-c", 'cat; echo "$1" >&2; exit 3', "name", "two  words"), stdin="gr\u00fcn\n", accept=(3,))
    assert (done.stdout, done.stderr, done.exit_code) == ("gr\u00fcn\n", "two  words\n", 3)


@settings(max_examples=20)
@given(st.lists(WORD, min_size=1, max_size=4))
def test_words_of_any_characters_arrive_as_they_are(host, words):
    done = host.run(("printf", "%s\\0", *words))
    assert done.stdout.split("\0")[:-1] == words


def test_root_runs_by_sudo_over_the_same_connection_of_another_login(server, keys, monkeypatch):
    monkeypatch.setattr(hosts, "SUDO", ("env", "BY=sudo"))
    user = Host(facts(keys, "host"), "paperspace", str(keys / "stack"), port=server.port)
    root, before = user.as_root(), len(server.tries)
    assert [one.run(("sh", "-c", "echo $BY")).stdout for one in (user, root)] == ["\n", "sudo\n"]
    assert len(server.tries) == before
    user.close()
    assert root.run(("sh", "-c", "echo $BY")).stdout == "sudo\n", "a connection that is gone is made again"
    root.close()
    root = Host(facts(keys, "host"), "paperspace", str(keys / "stack"), port=server.port).as_root()
    before = len(server.tries)
    assert root.run(("sh", "-c", "echo $BY")).stdout == "sudo\n", "its login ends no sooner"
    assert len(server.tries) == before


def transports():
    return {each for each in threading.enumerate() if isinstance(each, paramiko.Transport)}


def test_a_host_that_nobody_has_any_more_leaves_no_connection_open(server, keys):
    before = transports()
    Host(facts(keys, "host"), "root", str(keys / "stack"), port=server.port).run(("true",))
    gc.collect()  # An error that paramiko keeps has the host too.
    wait_until("the end of all connections", lambda: transports() <= before, timeout_s=30, every_s=0.1)


def test_an_output_of_megabytes_arrives_whole_and_in_seconds(host, tmp_path):
    (tmp_path / "output").write_text("gr\u00fcn" * 4_000_000)
    began = time.process_time()
    done = host.run(("cat", str(tmp_path / "output")), answer_bytes=1 << 25)
    assert done.stdout == "gr\u00fcn" * 4_000_000
    assert time.process_time() - began < 10


@pytest.mark.parametrize("stream", ["1", "2"])
def test_an_endless_answer_is_given_up_at_its_limit(host, stream):
    with pytest.raises(RemoteError, match=r"longer than 4,194,304 bytes.*fab ssh gpu-0"):
        host.run(("sh", "-c", f"yes x >&{stream}"))
    assert host.run(("echo", "again")).stdout == "again\n"


def test_a_file_that_arrives_too_slowly_is_given_up(host, tmp_path, monkeypatch):
    monkeypatch.setattr(hosts, "PIECES", "while :; do printf x; sleep 0.05; done")
    monkeypatch.setattr(hosts, "SLOWEST_OVER_S", 0.3)
    with pytest.raises(UnreachableError, match=r"it brought \d+ bytes in \d s"):
        list(host.pieces(str(tmp_path), 0, 10**6))


def test_many_small_files_that_arrive_slowly_are_given_up_together(host, tmp_path, monkeypatch):
    monkeypatch.setattr(hosts, "PIECES", "for n in 1 2 3 4; do printf x; sleep 0.1; done")
    monkeypatch.setattr(hosts, "SLOWEST_OVER_S", 0.8)
    with pytest.raises(TooSlowError, match=r"it brought \d+ bytes in \d s"):
        for _ in range(10):
            list(host.pieces(str(tmp_path), 0, 10**6))


def test_an_unexpected_exit_code_shows_output_and_none_of_the_input(host):
    with pytest.raises(CommandError, match="exit code 7") as error:
        host.run(("sh", "-c", "cat >/dev/null; seq 100; exit 7"), stdin="my-secret")
    assert "my-secret" not in str(error.value)
    assert str(error.value).splitlines()[1:] == [f"  {number}" for number in range(86, 101)]


def test_a_command_that_ends_without_an_exit_code_is_a_lost_connection(host):
    with pytest.raises(UnreachableError, match="ended without an exit code"):
        host.run(("no-exit-code",))
    assert host.run(("echo", "again")).stdout == "again\n"


def test_a_refused_connection_is_unreachable(pinned):
    with pytest.raises(UnreachableError, match="gpu-0 \\(guest 101") as silent:
        Host(pinned.facts, "root", pinned.key_file, port=1).connect()
    assert "Errno" not in str(silent.value)


def test_a_command_past_its_time_says_so_and_the_next_reconnects(host, server):
    host.connect()
    before = len(server.tries)
    with pytest.raises(UnreachableError, match=r"running `sleep` on .*: no answer after 0.2 s"):
        host.run(("sleep", "30"), timeout_s=0.2)
    assert host.run(("echo", "again")).stdout == "again\n"
    assert len(server.tries) > before


def test_ctrl_c_leaves_a_command_at_once_and_names_what_continues(host, tmp_path, monkeypatch):
    begun, free, over = (tmp_path / name for name in ("begun", "free", "over"))

    take = hosts._take

    def pressed_meanwhile(*stream):
        if threading.current_thread() is not threading.main_thread():
            return take(*stream)
        wait_until("the command", begun.exists, timeout_s=60, every_s=0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(hosts, "_take", pressed_meanwhile)
    script = 'touch "$0"; n=0; while [ ! -e "$1" ] && [ $n -lt 600 ]; do n=$((n + 1)); sleep 0.1; done; touch "$2"'
    with pytest.raises(KeyboardInterrupt, match=r"`sh -c .* may still run on gpu-0"):
        host.run(("sh", "-c", script, str(begun), str(free), str(over)))
    assert not over.exists()
    free.touch()
    monkeypatch.undo()
    assert host.run(("echo", "again")).stdout == "again\n"


def test_ctrl_c_during_work_on_all_hosts_names_those_still_working(monkeypatch):
    free, first = threading.Event(), threading.Event()

    class Pressed(threading.Thread):
        def join(self, timeout=None):
            first.wait(60)
            raise KeyboardInterrupt

    def act(host):
        first.set() if host == "gpu-0" else free.wait(60)

    monkeypatch.setattr(on_all_hosts, "threading", SimpleNamespace(Thread=Pressed))
    with pytest.raises(KeyboardInterrupt, match=r"the command may still run on .*gpu-1"):
        on_all_hosts.on_all(["gpu-0", "gpu-1"], act)
    free.set()


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_a_changed_host_key_is_refused_before_our_key_is_offered(server, keys, tmp_path, kind):
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "", "-f", tmp_path / "another"], check=True)
    before = len(server.tries)
    with pytest.raises(RemoteError, match="SHA256:.* fab trust gpu-0"):
        Host(facts(tmp_path, "another"), "root", str(keys / "stack"), port=server.port).connect()
    assert len(server.tries) == before


def test_only_the_stacks_key_is_tried_and_none_of_the_home_folder(server, keys, tmp_path, monkeypatch):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_ed25519").write_text((keys / "stack").read_text())
    (tmp_path / ".ssh" / "config").write_text(f"Host *\n  User somebody\n  IdentityFile {keys / 'stack'}\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    before = len(server.tries)
    with pytest.raises(LoginRefusedError, match="refused"):
        Host(facts(keys, "host"), "root", str(keys / "stranger"), port=server.port).connect()
    assert set(server.tries[before:]) == {f"root {load(keys, 'stranger').get_fingerprint().hex()}"}


def test_the_offered_login_methods_are_read_without_a_login(pinned, server, keys):
    before = len(server.tries)
    assert pinned.offered_logins() == {"publickey", "password"}
    other = Host(facts(keys, "other"), "root", str(keys / "stack"), port=server.port)
    with pytest.raises(UnreachableError, match="Bad host key"):
        other.offered_logins()
    assert len(server.tries) == before


def test_a_file_is_put_once_with_its_mode(host, tmp_path):
    path = tmp_path / "it's a file"
    assert host.put(str(path), "secret\n", "0600")
    assert not host.put(str(path), "secret\n", "0600")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("secret\n", 0o600)
    assert host.put(str(path), "secret\n", "0644")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_the_plain_client_gets_exactly_the_stacks_pinned_keys(pinned, keys):
    other = Host(replace(facts(keys, "other"), guest_id="102", public_address="127.0.0.2"), "root", str(keys / "stack"))
    ssh_argv(other, [other])
    argv = ssh_argv(pinned, [pinned, other], ("echo", "a b"))
    written = next(word.partition("=")[2] for word in argv if word.startswith("UserKnownHostsFile="))
    lines = f"[127.0.0.1]:{pinned.port} {pinned.facts.host_key}\n127.0.0.2 {other.facts.host_key}\n"
    assert Path(written).read_text() == lines
    assert [file.name for file in keys.glob("pinned_hosts*")] == ["pinned_hosts"]
    assert argv[-2:] == ("root@127.0.0.1", "echo 'a b'")
    assert "StrictHostKeyChecking=yes" in argv


def test_a_file_is_read_from_an_offset_to_its_listed_end(host, tmp_path):
    content = bytes(range(256)) * 4096
    (tmp_path / "model").write_bytes(content + b"written since")
    assert b"".join(host.pieces(str(tmp_path / "model"), 1000, len(content))) == content[1000:]
    with pytest.raises(RemoteError, match="gone of gpu-0.*does not exist any more"):
        list(host.pieces(str(tmp_path / "gone"), 0, 1))


@pytest.mark.parametrize(
    ("silent", "ask"),
    [
        ((Server, "check_channel_request"), lambda one, file: one.run(("true",))),
        ((Server, "check_channel_exec_request"), lambda one, file: one.run(("true",))),
        ((ssh_server, "execute"), lambda one, file: list(one.pieces(str(file), 0, 1000))),
        ((ssh_server, "execute"), lambda one, file: list(one.extend(file, f"{file}.part"))),
    ],
    ids=["a channel", "a command", "a file that is read", "a file that is sent"],
)
def test_a_machine_that_vanishes_under_an_open_connection_ends_the_wait(host, tmp_path, monkeypatch, silent, ask):
    (tmp_path / "file").write_bytes(bytes(1000))
    for module in (hosts, connection):
        monkeypatch.setattr(module, "REQUEST_TIMEOUT_S", 0.5)
    monkeypatch.setattr(connection, "SILENT_S", 0.5)
    monkeypatch.setattr(openssh, "MASTER", [*openssh.MASTER[:3], *SOON_GIVEN_UP, *openssh.MASTER[3:]])
    host._disconnect()
    vanishing = another(host)
    vanishing.run(("true",))
    over, execute = threading.Event(), ssh_server.execute

    def vanish(*args):
        return execute(*args) if "length" in str(args[-1]) else over.wait(30)

    monkeypatch.setattr(*silent, vanish)
    try:
        began = time.monotonic()
        with pytest.raises(UnreachableError, match="connection was lost|ended without an exit code"):
            ask(vanishing, tmp_path / "file")
        assert time.monotonic() - began < 20
    finally:
        over.set()
        vanishing._disconnect()


def test_a_quiet_peer_is_asked_and_given_up_within_two_minutes(pinned):
    pinned.run(("true",))
    opened = pinned._connection.transport.sock
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
    quiet = another(host)
    assert quiet.run(("sh", "-c", "sleep 2.5; echo done")).stdout == "done\n"
    quiet.close()
