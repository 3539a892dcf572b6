"""Handing the training image from host to host over the private network, so that the registry is asked by one host alone."""

from __future__ import annotations

from collections.abc import Sequence

from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.plain_text import note
from microcluster.remote.host import Host, RemoteError
from microcluster.remote.image import image_id, room_hint
from microcluster.remote.image_chain import chain
from microcluster.remote.image_door import DOOR, HAND_OVER_TIMEOUT_S, hand_over_argv, one_use_key
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import FOLDER, ensure_rank_files, rank_public_key


def hand_over(holders: Sequence[Host], lacking: Sequence[Host], container: Container, rank_key_file: str) -> None:
    """Give every host of ``lacking`` the image that the first of ``holders`` has: in a chain, and what that misses host by host."""
    tag = image.tag(container)
    wanted = image_id(holders[0], tag)
    having, left = list(holders), list(lacking)
    if len(left) > 1:
        chain(holders[0], left, container, rank_key_file)
        known = {id(host): image_id(host, tag) == wanted for host in left}
        having += [host for host in left if known[id(host)]]
        left = [host for host in left if not known[id(host)]]
    for pairs in image.rounds(having, left):
        sources = {id(target): source for source, target in pairs}
        on_all(
            [target for _, target in pairs],
            lambda target, sources=sources: _stream(sources[id(target)], target, container, rank_key_file),
        )
    others = [host for host in lacking if image_id(host, tag) != wanted]
    if others:
        raise RemoteError(
            f"handing {tag} over: {', '.join(map(str, others))} got another image than {holders[0]} has ({wanted}). "
            "Run the same command again."
        )


def _stream(source: Host, target: Host, container: Container, rank_key_file: str) -> None:
    """Send the image; Docker names it on the other side only once the whole of it has arrived and each layer is the one it says."""
    tag = image.tag(container)
    note(f"{target.facts.name}: training image from {source.facts.name} ...")
    ensure_rank_files(source, container, rank_key_file)
    source.put(f"{FOLDER}/known_machines", f"{target.facts.private_address} {target.pinned_key}\n", "0600")
    target.put(DOOR, one_use_key(rank_public_key(rank_key_file), source.facts.private_address), "0600")
    try:
        done = source.run(hand_over_argv(tag, target), timeout_s=HAND_OVER_TIMEOUT_S, accept=range(256))
    finally:
        target.run(("rm", "-f", DOOR))
    if done.exit_code:
        said = " ".join((done.stdout + done.stderr).strip().splitlines()[-1:])
        raise RemoteError(
            f"handing {tag} from {source} to {target}: exit code {done.exit_code} ({said}). {target.facts.name} uses nothing "
            f"of what arrived.{room_hint(said, target)} Run the same command again."
        )
