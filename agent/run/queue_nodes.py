"""Nodes that a queue grants to a run, as files of the run's folder name them; until then placeholders stand for their addresses."""

import os
from typing import List

from agent.machine import read_json

GRANTED, STOP, ENDED, SECRETS = "granted.json", "stop_asked", "nodes_ended.json", "secrets"
"""Entries of the run's folder: the nodes, the wish that the job ends, the ends of its processes on each node, and a folder with what the
program is given and nobody else reads, which goes with the job."""


def placeholder(node: int) -> str:
    """Return what stands for the address of a node by its number."""
    return "{node-" + str(node) + "}"


def granted(folder: str) -> List[List[str]]:
    """Return [name, address] of each node in rank order, nothing before the queue has granted them."""
    return read_json(os.path.join(folder, GRANTED)) or []


def filled(text: str, folder: str) -> str:
    """Return a text with the addresses that are known in place of what stands for them."""
    for number, (_, address) in enumerate(granted(folder)):
        text = text.replace(placeholder(number), address)
    return text
