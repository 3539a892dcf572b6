"""Handing the training image from host to host over the private network, so that the registry is asked by one host alone."""

from __future__ import annotations

from collections.abc import Sequence

from launchers import image
from launchers.payload import Container
from launchers.rendering import render
from remote.host import Host, RemoteError
from remote.image import image_id, room_hint
from remote.on_all import on_all
from remote.rank_files import FOLDER, ensure_rank_files, rank_public_key
from remote.waiting import say

HAND_OVER_TIMEOUT_S = 3600.0
DOOR = "/root/.ssh/authorized_keys2"
"""The second file that sshd reads by default: the first one, with the stack's own key, is never touched."""
DOOR_OF_USER = ".ssh/authorized_keys2"


def hand_over(holders: Sequence[Host], lacking: Sequence[Host], container: Container, rank_key_file: str) -> None:
    """Give every host of ``lacking`` the image that the first of ``holders`` has."""
    tag = image.tag(container)
    for pairs in image.rounds(holders, lacking):
        sources = {id(target): source for source, target in pairs}
        on_all(
            [target for _, target in pairs],
            lambda target, sources=sources: _stream(sources[id(target)], target, container, rank_key_file),
        )
    wanted = image_id(holders[0], tag)
    others = [host for host in lacking if image_id(host, tag) != wanted]
    if others:
        raise RemoteError(
            f"handing {tag} over: {', '.join(map(str, others))} got another image than {holders[0]} has ({wanted}). "
            "Run the same command again."
        )


def _stream(source: Host, target: Host, container: Container, rank_key_file: str) -> None:
    """Send the image; Docker names it on the other side only once the whole of it has arrived and each layer is the one it says."""
    tag = image.tag(container)
    say(f"{target.facts.name}: training image from {source.facts.name} ...")
    ensure_rank_files(source, container, rank_key_file)
    source.put(f"{FOLDER}/known_machines", f"{target.facts.private_address} {target.pinned_key}\n", "0600")
    target.put(DOOR, one_use_key(rank_public_key(rank_key_file), source.facts.private_address), "0600")
    try:
        argv = ("sh", "-c", render("hand_over.sh.j2", folder=FOLDER), "hand-over", tag, target.user)
        done = source.run((*argv, target.facts.private_address), timeout_s=HAND_OVER_TIMEOUT_S, accept=range(256))
    finally:
        target.run(("rm", "-f", DOOR))
    if done.exit_code:
        said = " ".join((done.stdout + done.stderr).strip().splitlines()[-1:])
        raise RemoteError(
            f"handing {tag} from {source} to {target}: exit code {done.exit_code} ({said}). {target.facts.name} uses nothing "
            f"of what arrived.{room_hint(said, target)} Run the same command again."
        )


def one_use_key(public_key: str, source_address: str) -> str:
    """Return the line that lets the ranks' key in once, from one address, to load an image and for nothing else."""
    command = f"rm -f {DOOR_OF_USER}; exec docker load --quiet"
    return f'restrict,from="{source_address}",command="{command}" {public_key.strip()}\n'
