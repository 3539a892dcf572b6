"""One node's place in a world of one process on each, and a count of all at the first node: no framework is known that would sum."""

import os
import socket
import time

JOIN_TIMEOUT_S = 60
PAUSE_S = 0.2


def place():
    """Return the node's number, and that of its one process."""
    return int(os.environ["NODE_RANK"]), 0


def versions():
    """Return what has to be the same on every node."""
    return {}


def allreduce(count):
    """Return the seconds after which every node has heard from the first one that all of them are there."""
    where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    nodes, began = int(os.environ["WORLD_SIZE"]), time.monotonic()
    if place()[0] == 0:
        admit(where, nodes)
    else:
        join(where, nodes)
    return time.monotonic() - began


def admit(where, nodes):
    """Wait for every other node, and tell each how many there are."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.settimeout(JOIN_TIMEOUT_S)
        listener.bind(where)
        listener.listen(nodes)
        others = [listener.accept()[0] for _ in range(nodes - 1)]
    for other in others:
        with other:
            other.sendall(str(nodes).encode())


def join(where, nodes):
    """Connect to the first node, which may still be starting, and compare what it counts."""
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while True:
        try:
            first = socket.create_connection(where, JOIN_TIMEOUT_S)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)
    with first, first.makefile("rb") as answer:
        found = answer.read().decode()
    if found != str(nodes):
        raise SystemExit("the first node counts {} nodes instead of {}".format(found or "no", nodes))
