"""The argv of the plain ssh client towards a host, with the pinned host key and the stack's key only."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from remote.host import Host


def ssh_argv(host: Host, command: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words for ``exec``; the pinned key is written beside the stack's keys."""
    known_hosts = Path(host.key_file).parent / f"known_hosts.{host.facts.guest_id}"
    known_hosts.write_text(f"{host.address} {host.pinned_key}\n")
    options = {
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "UserKnownHostsFile": str(known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": "10",
    }
    settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    line = (shlex.join(command),) if command else ()
    return ("ssh", "-F", "/dev/null", "-i", host.key_file, *settings, f"{host.user}@{host.address}", *line)
