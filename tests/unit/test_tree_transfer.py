"""A folder's tree on its way to a host, over the real ssh of this computer and an ssh server on loopback."""

import os
import stat
import subprocess
from dataclasses import replace

import paramiko
import pytest
from ssh_server import SshServer
from test_jobs_run_spec import CLUSTER

from agent.records.inventory import is_sent
from microcluster.config.folder_reader import read_tree
from microcluster.core.polling import wait_until
from microcluster.jobs import cluster_facts
from microcluster.jobs.kinds import section_of
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job, tree_transfer
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.tree_transfer import send_tree

BYTES = os.urandom(300_000)


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "mine"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / name], check=True)
    return folder


@pytest.fixture
def host(keys, tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "h"))
    own, mine = (paramiko.Ed25519Key.from_private_key_file(str(keys / name)) for name in ("host", "mine"))
    server = SshServer(own, mine)
    facts = cluster_facts.HostFacts("gpu-0", "1", "127.0.0.1", "", (keys / "host.pub").read_text().strip())
    host = Host(facts, "root", str(keys / "mine"), port=server.port)
    yield host
    host.close()
    server.close()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "program"
    (folder / "data" / "größe").mkdir(parents=True)
    (folder / "train.py").write_text("print()\n")
    (folder / "run.sh").write_text("true\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "data" / "größe" / "a.bin").write_bytes(BYTES)
    (folder / "data" / "empty").write_bytes(b"")
    (folder / "latest").symlink_to("data/größe/a.bin")
    return folder


@pytest.fixture
def target(tmp_path):
    return tmp_path / "there" / "sent" / "program"


def contents(folder):
    """Return what a folder holds: contents, targets of links, and what may be executed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = os.readlink(path)
        elif path.is_file():
            found[str(path.relative_to(folder))] = (path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR))
    return found


def inodes(folder):
    return {str(path.relative_to(folder)): path.stat().st_ino for path in folder.rglob("*") if path.is_file()}


def test_a_folder_arrives_as_it_is_and_goes_once(host, folder, target):
    assert send_tree(host, read_tree(folder), str(target)) is True
    assert contents(target) == contents(folder)
    assert send_tree(host, read_tree(folder), str(target)) is False


def test_one_folder_travels_as_program_and_as_data(host, folder, target):
    (folder / ".gitignore").write_text("data\n")
    (folder / "latest").unlink()
    program, data = read_tree(folder), read_tree(folder, is_data=True)
    send_tree(host, program, str(target))
    send_tree(host, data, str(target.with_name("data")))
    assert sorted(contents(target)) == [".gitignore", "run.sh", "train.py"]
    assert contents(target.with_name("data")) == contents(folder)


def test_only_what_is_missing_goes_and_what_is_gone_is_removed(host, folder, target):
    send_tree(host, read_tree(folder), str(target))
    before = inodes(target)
    (folder / "train.py").write_text("print(2)\n")
    (folder / "run.sh").unlink()
    (folder / "latest").unlink()
    (folder / "latest").mkdir()
    (folder / "latest" / "model").write_text("1")
    assert send_tree(host, read_tree(folder), str(target)) is True
    assert contents(target) == contents(folder)
    assert inodes(target)["data/größe/a.bin"] == before["data/größe/a.bin"]


def test_what_was_changed_on_the_host_is_sent_again(host, folder, target):
    tree = read_tree(folder)
    send_tree(host, tree, str(target))
    (target / "train.py").write_text("print(9)\n")
    (target / "more").write_text("")
    assert send_tree(host, tree, str(target)) is True
    assert contents(target) == contents(folder)


def test_a_killed_send_goes_on_and_until_then_there_is_no_folder(host, folder, target, monkeypatch):
    (folder / "train.py").write_bytes(BYTES)
    tree, whole = read_tree(folder), tree_transfer._shown

    def cut(pieces, *more):
        yield next(whole(pieces, *more))
        wait_until("the first file", lambda: is_sent(part / "data/größe/a.bin"), timeout_s=20, every_s=0.01)
        raise KeyboardInterrupt

    part = target.with_name(".program.part")
    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(tree_transfer, "_shown", cut)
        killed.setattr(tree_transfer, "PIECE_BYTES", len(BYTES) + 20_000)
        send_tree(host, tree, str(target))
    assert not target.exists()
    kept = target.with_name(".program.list")
    wait_until("its end there", lambda: kept.exists() and "a.bin" in kept.read_text(), timeout_s=20, every_s=0.05)
    before = inodes(part)["data/größe/a.bin"]
    assert send_tree(host, tree, str(target)) is True
    assert contents(target) == contents(folder)
    assert inodes(target)["data/größe/a.bin"] == before


def test_a_file_that_changes_while_it_is_sent_starts_nothing(host, folder, target):
    tree = read_tree(folder)
    (folder / "data" / "größe" / "a.bin").write_bytes(BYTES[::-1])
    with pytest.raises(RemoteError, match=r"data/größe/a.bin has changed while it was sent, so nothing was started"):
        send_tree(host, tree, str(target))
    assert not target.exists()
    send_tree(host, read_tree(folder), str(target))
    assert contents(target) == contents(folder)


def test_a_file_that_did_not_arrive_whole_starts_nothing(host, folder, target, monkeypatch):
    whole = tree_transfer._header
    monkeypatch.setattr(tree_transfer, "_header", lambda entry: whole(entry._replace(name=entry.name + "x")))
    with pytest.raises(RemoteError, match="data/empty did not arrive whole. Run the same command again"):
        send_tree(host, read_tree(folder), str(target))
    assert not target.exists()


def test_a_host_that_has_the_tree_needs_no_folder_here(host, folder, target):
    tree = read_tree(folder)
    send_tree(host, tree, str(target))
    folder.rename(folder.with_name("moved"))
    assert send_tree(host, tree, str(target)) is False
    (target / "train.py").unlink()
    with pytest.raises(RemoteError, match="train.py|program"):
        send_tree(host, tree, str(target))


@pytest.mark.parametrize("answer", ["[7]", "[-1]", '["../x"]', "{}", "nonsense"])
def test_a_host_gets_no_file_that_is_not_in_the_tree(host, folder, answer, monkeypatch, tmp_path):
    (tmp_path / "receive.py").write_text(f"import sys; sys.argv[1] == 'look' and sys.exit(1); print({answer!r})")
    monkeypatch.setattr(tree_transfer, "RECEIVE", tmp_path / "receive.py")
    with pytest.raises(RemoteError, match="Look at the machine"):
        send_tree(host, read_tree(folder), str(tmp_path / "there"))


def test_a_run_starts_with_the_folder_in_its_own(host, folder, tmp_path):
    (folder / "train.py").write_text("print(3)\n")
    section = {"kind": "horovod", "source": str(folder), "script": "train.py", "maxSteps": 1}
    facts = replace(CLUSTER, mount_point=str(tmp_path / "disk"), container=None, data=None, run="abcdef012345")
    facts = replace(facts, job=section_of(section).model_validate(section), tree=read_tree(folder))
    run = RunFolder(facts, word="0a0b0c")
    job.place(host, run.path, run.texts())
    job._ensure_program(host, run)
    assert contents(tmp_path / "disk/runs/abcdef012345/program") == contents(folder)
    assert contents(tmp_path / "disk/sent/program-1f3a9c42") == contents(folder)
