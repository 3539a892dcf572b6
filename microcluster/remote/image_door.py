"""The way of the training image from host to host: the key that opens it once, and the words that send a stream through."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from microcluster.jobs.rendering import render
from microcluster.remote.host import Host
from microcluster.remote.ssh_mesh import FOLDER

HAND_OVER_TIMEOUT_S = 3600.0
DOOR = "/root/.ssh/authorized_keys2"
"""The second file that sshd reads by default: the first one, with the stack's own key, is never touched."""
DOOR_OF_USER = ".ssh/authorized_keys2"
LOAD = ("docker", "load", "--quiet")


def one_use_key(public_key: str, source_address: str, take_in: Sequence[str] = LOAD) -> str:
    """Return the line that lets the ranks' key in once, from one address, to take an image in and for nothing else."""
    command = f"rm -f {DOOR_OF_USER}; exec {shlex.join(take_in)}"
    return f'restrict,from="{source_address}",command="{command}" {public_key.strip()}\n'


def hand_over_argv(tag: str, target: Host) -> tuple[str, ...]:
    """Return the words that send the image ``tag`` of the host that runs them to ``target``."""
    script = render("hand_over.sh.j2", folder=FOLDER)
    return ("sh", "-c", script, "hand-over", tag, target.user, target.facts.private_address)
