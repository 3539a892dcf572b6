"""`fab trust` against an ssh server on loopback that shows another host key than the ordered one."""

import io
import subprocess
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from ssh_server import SshServer

from microcluster.commands.trust import confirm
from microcluster.jobs import cluster_facts
from microcluster.jobs.cluster_facts import ClusterFacts, Container
from microcluster.remote import ssh_mesh
from microcluster.remote.errors import Completed, RemoteError, UnreachableError
from microcluster.remote.host import Host
from microcluster.remote.host_key import RECORD, fingerprint, trusted_key
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.steps import open_hosts
from microcluster.run import cluster as run_cluster
from microcluster.setup.errors import UserMistake


@pytest.fixture
def keys(tmp_path):
    """Return the folder of a stack's keys; "shown" is what the machine shows, "ordered" what it was ordered with."""
    for name in ("shown", "ordered", "id_ed25519"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", tmp_path / name], check=True)
    return tmp_path


@pytest.fixture
def server(keys):
    shown, stack = (paramiko.Ed25519Key.from_private_key_file(str(keys / name)) for name in ("shown", "id_ed25519"))
    server = SshServer(shown, stack)
    yield server
    server.close()


@pytest.fixture
def host(server, keys):
    return open_host(server, keys)


def line(keys, name):
    return (keys / f"{name}.pub").read_text().strip()


def stack_of(keys):
    facts = cluster_facts.HostFacts("gpu-0", "101", "127.0.0.1", "10.112.7.2", line(keys, "ordered"))
    return ClusterFacts("dev", "1f3a9c42", (facts,), key_file=str(keys / "id_ed25519"))


def open_host(server, keys):
    (host,) = open_hosts(stack_of(keys))
    host.port = server.port
    return host


def test_a_trusted_key_is_pinned_without_a_word_for_this_guest_alone(host, server, keys, capsys):
    with pytest.raises(RemoteError, match="not the one it was ordered with"):
        host.connect()
    assert host.shown_key() == line(keys, "shown")
    assert server.tries == [], "without any login"
    assert confirm(host, yes=True) == 0
    again = open_host(server, keys)
    assert confirm(again, yes=False) == 0
    assert "pinned already" in capsys.readouterr().out
    assert again.run(("echo", "hello")).stdout == "hello\n"
    again.close()
    assert trusted_key(host.key_file, "102") is None
    assert (keys / RECORD).stat().st_mode & 0o777 == 0o600


def test_the_plain_client_and_the_ranks_pin_the_trusted_key_too(host, server, keys, monkeypatch):
    confirm(host, yes=True)
    trusted, written = open_host(server, keys), {}
    monkeypatch.setattr(Host, "put", lambda self, path, text, mode: written.setdefault(path, text))
    ssh_mesh.ensure_known_hosts(trusted, [trusted], 4444)
    assert written["/run/microcluster/known_hosts"] == f"[10.112.7.2]:4444 {line(keys, 'shown')}\n"
    pinned = next(
        word.partition("=")[2] for word in ssh_argv(trusted, [trusted]) if word.startswith("UserKnownHostsFile=")
    )
    assert line(keys, "shown") in Path(pinned).read_text()


def test_a_container_shows_the_ranks_key_and_never_its_machines(host, keys, monkeypatch):
    written = {}
    monkeypatch.setattr(Host, "run", lambda self, argv, **options: Completed(0, "the machine's host key", ""))
    monkeypatch.setattr(Host, "put", lambda self, path, text, mode: written.setdefault(path, text))
    facts = replace(stack_of(keys), container=Container("openseq2seq", "r.test/i:t"), rank_key_file=str(keys / "shown"))
    ssh_mesh.ensure_rank_files(host, facts.container, str(facts.rank_key_file))
    ssh_mesh.ensure_ranks_reach(host, [host], facts)
    assert "HostKey /run/microcluster/rank_ed25519" in written["/run/microcluster/sshd_config"]
    assert not any("the machine's host key" in text for text in written.values())
    known = written["/run/microcluster/known_hosts"].splitlines()
    ranks = f"[10.112.7.2]:4444 {(keys / 'shown.pub').read_text().strip()}"
    assert known == [f"[10.112.7.2]:4444 {line(keys, 'ordered')}", ranks]


def test_both_fingerprints_are_shown_like_ssh_keygens_before_any_question(host, keys, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert confirm(host, yes=False) == 0
    said = capsys.readouterr().out
    for name in ("shown", "ordered"):
        listed = subprocess.run(["ssh-keygen", "-lf", keys / f"{name}.pub"], capture_output=True, text=True, check=True)
        assert fingerprint(line(keys, name)) == f"ssh-ed25519 {listed.stdout.split()[1]}"
        assert fingerprint(line(keys, name)) in said


@pytest.mark.parametrize("answer", ["no\n", "", "y\n"])
def test_without_a_plain_yes_nothing_is_recorded(host, keys, monkeypatch, answer):
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert confirm(host, yes=False) == 1
    assert not (keys / RECORD).exists()


def test_a_missing_or_unknown_machine_and_a_broken_record_are_sentences(host, keys):
    host.port = 1
    with pytest.raises(UnreachableError, match="gpu-0 \\(guest 101"):
        host.shown_key()
    with pytest.raises(UserMistake, match="has no machine gpu-7 to log in to; it has gpu-0"):
        run_cluster.host_named(stack_of(keys), "gpu-7")
    (keys / RECORD).write_text("{")
    with pytest.raises(RemoteError, match="Remove it, then fab trust again"):
        open_hosts(stack_of(keys))
