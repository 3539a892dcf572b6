"""The argv of the ssh client for a host, with the pinned host key and the stack's key only."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from microcluster.remote.host import Host

SSH_PORT = 22


def ssh_argv(
    host: Host, hosts: Sequence[Host], command: Sequence[str] = (), more: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the argv; writes the pinned keys of all ``hosts`` beside the stack's keys.

    Args:
        more: further options.
    """
    # Not ssh's own name for it: before a queue the key is the person's own, and beside it lie the hosts that they know.
    known_hosts = Path(host.key_file).parent / "pinned_hosts"
    lines = "".join(f"{_named(one)} {one.pinned_key}\n" for one in hosts)
    if not known_hosts.exists() or known_hosts.read_text() != lines:  # Another client may read it.
        known_hosts.write_text(lines)
    options = {
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": str(known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": "10",
        "ServerAliveInterval": "15",
        "ServerAliveCountMax": "4",
    }
    settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    port = ("-p", str(host.port)) if host.port != SSH_PORT else ()
    line = (shlex.join(command),) if command else ()
    return (
        "ssh",
        "-F",
        "/dev/null",
        "-i",
        host.key_file,
        *settings,
        *more,
        *port,
        f"{host.user}@{host.address}",
        *line,
    )


def _named(host: Host) -> str:
    """Return a host as a file of known hosts names it."""
    return host.address if host.port == SSH_PORT else f"[{host.address}]:{host.port}"
