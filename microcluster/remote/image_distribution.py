"""Sending the training image in one chain: every host loads what comes and passes it on at the same time.

So the registry is asked by one host alone, and a chain of any length takes hardly longer than one host.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from agent import chain_copy
from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render
from microcluster.plain_text import note
from microcluster.remote.host import Host, RemoteError
from microcluster.remote.image import DISK_FULL, image_id, room_hint
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import FOLDER, ensure_rank_files, rank_public_key

TIMEOUT_S = 3600.0
LOAD = ("docker", "load", "--quiet")
CHAIN_COPY = Path(chain_copy.__file__)
TAKE_IN = f"{FOLDER}/take_in.sh"
KEYS = "/root/.ssh/authorized_keys2"
"""The second file that sshd reads by default: the first one, with the stack's own key, is never touched."""
KEYS_OF_USER = ".ssh/authorized_keys2"


def distribute(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> None:
    """Give ``targets`` the image of ``source``; a host that a broken chain has missed gets a chain of its own.

    Docker names an image only once the whole of it has arrived and each layer is the one that it says.
    """
    tag = image.tag(container)
    wanted = image_id(source, tag)
    broken = _chain(source, targets, container, rank_key_file)
    missed = [host for host in targets if image_id(host, tag) != wanted]
    if len(targets) > 1:
        for host in missed:
            broken.update(_chain(source, [host], container, rank_key_file))
    failed = [_failure(source, host, tag, broken) for host in missed if image_id(host, tag) != wanted]
    if failed:
        raise RemoteError(f"{' '.join(failed)} Run the same command again.")


def one_use_key(public_key: str, source_address: str) -> str:
    """Return the line that lets the ranks' key in once, from one address, to send an image and for nothing else."""
    command = f"rm -f {KEYS_OF_USER}; exec {shlex.join(('sh', TAKE_IN))}"
    return f'restrict,from="{source_address}",command="{command}" {public_key.strip()}\n'


def _chain(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> dict[str, str]:
    """Send the image over all of ``targets``; return {private address: reason} of the links that broke."""
    members = [source, *targets]
    names = {host.facts.private_address: host.facts.name for host in targets}
    note(f"training image: in one chain from {' to '.join(host.facts.name for host in members)} ...")
    place = {id(host): number for number, host in enumerate(members)}
    try:
        on_all(members, lambda host: _join(members, place[id(host)], container, rank_key_file))
        script = render("hand_over.sh.j2", folder=FOLDER)
        argv = (
            "sh",
            "-c",
            script,
            "hand-over",
            image.tag(container),
            targets[0].user,
            targets[0].facts.private_address,
        )
        done = source.run(argv, timeout_s=TIMEOUT_S, accept=range(256))
    finally:
        on_all(targets, lambda host: host.run(("rm", "-f", TAKE_IN, KEYS)))
    output = (done.stdout + done.stderr).strip().splitlines()
    links = [json.loads(line.removeprefix(chain_copy.MARK)) for line in output if line.startswith(chain_copy.MARK)]
    if done.exit_code:
        reason = next((line for line in output if DISK_FULL in line), " ".join(output[-1:]))
        links.append([targets[0].facts.private_address, f"exit code {done.exit_code} ({reason})"])
    for address, reason in links:
        note(f"the chain broke at {names.get(address, address)} ({reason})")
    return dict(links)


def _join(members: Sequence[Host], place: int, container: Container, rank_key_file: str) -> None:
    """Let a host know the one behind it, and open it to the one before it."""
    host, onward = members[place], members[place + 1 : place + 2]
    ensure_rank_files(host, container, rank_key_file)
    for each in onward:
        host.put(f"{FOLDER}/known_machines", f"{each.facts.private_address} {each.pinned_key}\n", "0600")
    if place == 0:
        return
    host.put(f"{FOLDER}/{CHAIN_COPY.name}", CHAIN_COPY.read_text())
    way = ["sh", f"{FOLDER}/machine_ssh", "-l", host.user]
    inputs = {"folder": FOLDER, "sink": json.dumps(LOAD), "way": json.dumps(way)}
    host.put(TAKE_IN, render("take_in.sh.j2", **inputs, onward=[each.facts.private_address for each in onward]))
    before = members[place - 1].facts.private_address
    host.put(KEYS, one_use_key(rank_public_key(rank_key_file), before), "0600")


def _failure(source: Host, host: Host, tag: str, broken: dict[str, str]) -> str:
    reason = broken.get(host.facts.private_address)
    if reason is None:
        return f"handing {tag} from {source} to {host}: it got another image than {source} has."
    hint = room_hint(reason, host)
    return f"handing {tag} from {source} to {host}: {reason}. {host.facts.name} uses nothing of what arrived.{hint}"
