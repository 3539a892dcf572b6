"""Handing the training image over in one chain: every host loads what comes and passes it on at the same time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from agent import chain_copy
from microcluster.jobs import image
from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render
from microcluster.plain_text import note
from microcluster.remote.host import Host
from microcluster.remote.image_door import DOOR, HAND_OVER_TIMEOUT_S, LOAD, hand_over_argv, one_use_key
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import FOLDER, ensure_rank_files, rank_public_key

RELAY = Path(chain_copy.__file__)
TAKE_IN = f"{FOLDER}/take_in.sh"


def chain(source: Host, targets: Sequence[Host], container: Container, rank_key_file: str) -> None:
    """Send the image of ``source`` over all of ``targets``, and say where the chain broke; who has it is for the caller to ask."""
    members, tag = [source, *targets], image.tag(container)
    names = {host.facts.private_address: host.facts.name for host in targets}
    note(f"training image: in one chain from {' to '.join(host.facts.name for host in members)} ...")
    number = {id(host): place for place, host in enumerate(members)}
    try:
        on_all(members, lambda host: _join(members, number[id(host)], container, rank_key_file))
        argv = hand_over_argv(tag, targets[0])
        done = source.run(argv, timeout_s=HAND_OVER_TIMEOUT_S, accept=range(256))
    finally:
        on_all(targets, lambda host: host.run(("rm", "-f", TAKE_IN, DOOR)))
    said = (done.stdout + done.stderr).strip().splitlines()
    broken = [json.loads(line.removeprefix(chain_copy.MARK)) for line in said if line.startswith(chain_copy.MARK)]
    if done.exit_code:
        broken.append([targets[0].facts.private_address, " ".join(said[-1:])])
    for address, why in broken:
        note(f"the chain broke at {names.get(address, address)} ({why}); what is missing is brought host by host")


def _join(members: Sequence[Host], place: int, container: Container, rank_key_file: str) -> None:
    """Let a host know the one behind it, and open it to the one before it."""
    host, onward = members[place], members[place + 1 : place + 2]
    ensure_rank_files(host, container, rank_key_file)
    for each in onward:
        host.put(f"{FOLDER}/known_machines", f"{each.facts.private_address} {each.pinned_key}\n", "0600")
    if place == 0:
        return
    host.put(f"{FOLDER}/{RELAY.name}", RELAY.read_text())
    way = ["sh", f"{FOLDER}/machine_ssh", "-l", host.user]
    inputs = {"folder": FOLDER, "sink": json.dumps(LOAD), "way": json.dumps(way)}
    host.put(TAKE_IN, render("take_in.sh.j2", **inputs, onward=[each.facts.private_address for each in onward]))
    before = members[place - 1].facts.private_address
    host.put(DOOR, one_use_key(rank_public_key(rank_key_file), before, ("sh", TAKE_IN)), "0600")
