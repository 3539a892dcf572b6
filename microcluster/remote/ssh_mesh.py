"""The files for ssh between the ranks, in memory only: key, pinned host keys, ssh wrapper, sshd configuration."""

from collections.abc import Sequence
from pathlib import Path

from microcluster.jobs import cluster_facts
from microcluster.jobs.rendering import render
from microcluster.remote.connection import MACHINE_SSH_PORT, known_name
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import ROOT, Host

FOLDER = "/run/microcluster"
AUTHORIZE = """umask 077; mkdir -p ~/.ssh; touch ~/.ssh/authorized_keys
grep -qxF -- "$1" ~/.ssh/authorized_keys || printf '%s\\n' "$1" >> ~/.ssh/authorized_keys"""
"""Takes the ranks' key for logins to the machine itself."""


def ensure_rank_files(host: Host, container: cluster_facts.Container, rank_key_file: str) -> bool:
    """Write all files except the known hosts; return whether anything changed."""
    private, public = _rank_key(rank_key_file)
    host.run(("mkdir", "-p", "-m", "700", FOLDER))
    address = host.facts.private_address
    inputs = {"folder": FOLDER, "port": container.ssh_port, "address": address, "user": "root"}
    files = (
        ("rank_ed25519", private, "0600"),
        ("authorized_keys", public, "0600"),
        ("sshd_config", render("sshd_config.j2", **inputs), "0600"),
        ("ssh", render("ssh.j2", **inputs), "0755"),
        ("machine_ssh", render("machine_ssh.j2", **inputs), "0755"),
        ("start.sh", render("start.sh.j2", **inputs), "0755"),
    )
    return any([host.put(f"{FOLDER}/{name}", text, mode) for name, text, mode in files])


def ensure_ranks_reach(host: Host, members: Sequence[Host], facts: cluster_facts.ClusterFacts) -> None:
    """Let what runs on a host log in to every member: to its container, or to the machine where there is none."""
    if host.user != ROOT:  # In memory, and gone after a boot.
        host.as_root().run(("install", "-d", "-m", "700", "-o", host.user, FOLDER))
    port = facts.container.ssh_port if facts.container else MACHINE_SSH_PORT
    private, public = _rank_key(str(facts.rank_key_file))
    # Every rank has the ranks' key and shows it as its host key; a container of an older version shows its machine's.
    ensure_known_hosts(host, members, port, *([public.strip()] if facts.container else ()))
    if facts.container:  # Which has the other files since its own step.
        return
    host.put(f"{FOLDER}/rank_ed25519", private, "0600")
    host.put(f"{FOLDER}/ssh", render("ssh.j2", folder=FOLDER, port=port, user=facts.user), "0755")
    host.run(("sh", "-c", AUTHORIZE, "authorize", public.strip()))


def ensure_known_hosts(host: Host, members: Sequence[Host], port: int, *shared: str) -> bool:
    """Pin what every member may show on a port: its own host key, and those that all of them have; return whether anything changed."""
    host.run(("mkdir", "-p", "-m", "700", FOLDER))
    known = [(known_name(member.facts.private_address, port), member.pinned_key) for member in members]
    lines = (f"{name} {key}" for name, own in known for key in (own, *shared))
    return host.put(f"{FOLDER}/known_hosts", "\n".join(lines) + "\n", "0600")


def rank_public_key(rank_key_file: str) -> str:
    """Return the public line of the ranks' key."""
    return _rank_key(rank_key_file)[1]


def _rank_key(path: str) -> tuple[str, str]:
    try:
        return Path(path).read_text(), Path(path + ".pub").read_text()
    except OSError as error:
        raise RemoteError(f"reading the ranks' key {path}: {error.strerror}. Make it again: make setup") from error
