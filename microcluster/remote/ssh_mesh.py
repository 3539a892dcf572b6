"""What the ranks need to reach each other, in memory only: key, pinned host keys, ssh wrapper, sshd of the container."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from microcluster.jobs import cluster_facts
from microcluster.jobs.rendering import render
from microcluster.remote.host import Host, RemoteError

FOLDER = "/run/microcluster"
HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"


def ensure_rank_files(host: Host, container: cluster_facts.Container, rank_key_file: str) -> bool:
    """Put everything but the known hosts; return whether anything changed."""
    private, public = _rank_key(rank_key_file)
    host.run(("mkdir", "-p", "-m", "700", FOLDER))
    address = host.facts.private_address
    inputs = {"folder": FOLDER, "port": container.ssh_port, "address": address}
    files = (
        ("rank_ed25519", private, "0600"),
        ("authorized_keys", public, "0600"),
        # The container shows the machine's own host key, which is pinned since the order.
        ("ssh_host_ed25519_key", host.run(("cat", HOST_KEY)).stdout, "0600"),
        ("sshd_config", render("sshd_config.j2", **inputs), "0600"),
        ("ssh", render("ssh.j2", **inputs), "0755"),
        ("machine_ssh", render("machine_ssh.j2", **inputs), "0755"),
        ("start.sh", render("start.sh.j2", **inputs), "0755"),
    )
    return any([host.put(f"{FOLDER}/{name}", text, mode) for name, text, mode in files])


def ensure_known_hosts(host: Host, members: Sequence[Host], container: cluster_facts.Container) -> bool:
    """Pin the host key of every member's container; return whether anything changed."""
    lines = (f"[{member.facts.private_address}]:{container.ssh_port} {member.pinned_key}" for member in members)
    return host.put(f"{FOLDER}/known_hosts", "\n".join(lines) + "\n", "0600")


def rank_public_key(rank_key_file: str) -> str:
    """Return the public line of the ranks' key."""
    return _rank_key(rank_key_file)[1]


def _rank_key(path: str) -> tuple[str, str]:
    try:
        return Path(path).read_text(), Path(path + ".pub").read_text()
    except OSError as error:
        raise RemoteError(f"reading the ranks' key {path}: {error.strerror}. Make it again: make setup") from error
