"""Runs as every rank before the training: prints where it is, and sums as much as the training's gradients.

Arguments: the interface between the ranks, the configuration that the ranks will read, the size of the model in bytes, and the
module of the agent that knows what started the rank.
"""

import hashlib
import importlib
import json
import socket
import sys

from agent.node_facts import address_of

FLOAT_BYTES = 4
MARK = "microcluster-preflight "
"""How the one line begins that every rank prints."""


def main(interface, config, size, world):
    with open(config, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    started = importlib.import_module("agent." + world)
    rank, local_rank = started.place()
    facts = {
        "rank": rank,
        "local_rank": local_rank,
        "host": socket.gethostname(),
        "address": address_of(interface),
        "config": digest,
        "versions": started.versions(),
        "allreduce_s": round(started.allreduce(int(size) // FLOAT_BYTES), 3),
    }
    # One write: the lines of several ranks go into one pipe.
    sys.stdout.write(MARK + json.dumps(facts, sort_keys=True) + "\n")
    sys.stdout.flush()
