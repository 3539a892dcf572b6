"""Copies the training image in one chain: every host loads it and sends it on at the same time.

Only one host asks the registry, and a long chain takes hardly longer than one host.
"""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from agent import chain_copy
from core.plain_text import note
from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.image import DISK_FULL, image_id, room_hint
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import FOLDER, ensure_rank_files, rank_public_key

TIMEOUT_S = 3600.0
LOAD = ("docker", "load", "--quiet")
CHAIN_COPY = Path(chain_copy.__file__)
RECEIVE = f"{FOLDER}/take_in.sh"
KEYS = "/root/.ssh/authorized_keys2"
"""The second file that sshd reads by default; the first one has the stack's own key and is not changed."""
KEYS_OF_USER = ".ssh/authorized_keys2"


def distribute(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> None:
    """Copy the image of ``source`` to ``targets``; hosts behind a broken link get it in a second try, one by one.

    Docker tags an image only when it is complete and every layer has its hash.
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
    """Return the line that admits the ranks' key once, from one address, only to send an image."""
    command = f"rm -f {KEYS_OF_USER}; exec {shlex.join(('sh', RECEIVE))}"
    return f'restrict,from="{source_address}",command="{command}" {public_key.strip()}\n'


def _chain(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> dict[str, str]:
    """Send the image along ``targets``; return {private address: reason} of broken links."""
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
        on_all(targets, lambda host: host.run(("rm", "-f", RECEIVE, KEYS)))
    output = (done.stdout + done.stderr).strip().splitlines()
    links = [json.loads(line.removeprefix(chain_copy.MARK)) for line in output if line.startswith(chain_copy.MARK)]
    if done.exit_code:
        reason = next((line for line in output if DISK_FULL in line), " ".join(output[-1:]))
        links.append([targets[0].facts.private_address, f"exit code {done.exit_code} ({reason})"])
    for address, reason in links:
        note(f"the chain broke at {names.get(address, address)} ({reason})")
    return dict(links)


def _join(members: Sequence[Host], place: int, container: Container, rank_key_file: str) -> None:
    """Prepare a host: pin the next host's key, and admit the previous host."""
    host, onward = members[place], members[place + 1 : place + 2]
    ensure_rank_files(host, container, rank_key_file)
    for each in onward:
        host.put(f"{FOLDER}/known_machines", f"{each.facts.private_address} {each.pinned_key}\n", "0600")
    if place == 0:
        return
    host.put(f"{FOLDER}/{CHAIN_COPY.name}", CHAIN_COPY.read_text())
    way = ["sh", f"{FOLDER}/machine_ssh", "-l", host.user]
    inputs = {"folder": FOLDER, "sink": json.dumps(LOAD), "way": json.dumps(way)}
    host.put(RECEIVE, render("take_in.sh.j2", **inputs, onward=[each.facts.private_address for each in onward]))
    before = members[place - 1].facts.private_address
    host.put(KEYS, one_use_key(rank_public_key(rank_key_file), before), "0600")


def _failure(source: Host, host: Host, tag: str, broken: dict[str, str]) -> str:
    reason = broken.get(host.facts.private_address)
    if reason is None:
        return f"copying {tag} from {source} to {host}: the image there differs from the one on {source}."
    hint = room_hint(reason, host)
    return f"copying {tag} from {source} to {host}: {reason}. {host.facts.name} has no partial image.{hint}"
