"""Workers over a parameter server: scheduler, servers and workers, each started on its node, held to the private network.

Every process runs the same command; its role comes from the environment, and a server or scheduler never reaches the program's own
code. When one of them dies the others hang without a word, so any end but a good one ends the run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agent.ps_world import LOCAL_VARIABLE, NUMBER_VARIABLE
from microcluster.jobs.values import Process, Run

SCHEDULER, SERVER, WORKER = "scheduler", "server", "worker"
STOP_ORDER = (WORKER, SERVER, SCHEDULER)
"""Servers and scheduler end by themselves after the last worker."""
MODULE = "ps_world"
"""The agent's module that knows such a worker's place."""
PORT = 48124
"""The scheduler's, on the first node; all others listen on ports that the system chooses."""


@dataclass(frozen=True)
class Layout:
    """How many processes of each role are on every node."""

    servers: int = 1
    workers: int = 1


def on_every_node(run: Run, layout: Layout, command: Callable[[int], Sequence[str]]) -> list[Process]:
    """Return the scheduler on the first node, and the servers and workers of all nodes, numbered in the order of the nodes.

    Args:
        command: gives the argv of the worker with this number among its node's; servers and scheduler get the first one's.
    """
    nodes = range(len(run.world.addresses))
    servers = [(SERVER, node, 0) for node in nodes for _ in range(layout.servers)]
    workers = [(WORKER, node, local) for node in nodes for local in range(layout.workers)]
    made = []
    for order, places in enumerate(([(SCHEDULER, 0, 0)], servers, workers)):
        for number, (role, node, local) in enumerate(places):
            given = environment(run, layout, role, node) | {NUMBER_VARIABLE: str(number), LOCAL_VARIABLE: str(local)}
            made.append(Process(role, node, without_port(command(local)), given, order, name=f"{role} {number}"))
    return made


def environment(run: Run, layout: Layout, role: str, node: int) -> dict[str, str]:
    """Return what a process gets beside its own environment and the run's mark; its address keeps it to the private network."""
    addresses = run.world.addresses
    return {
        "DMLC_ROLE": role,
        "DMLC_PS_ROOT_URI": addresses[0],
        "DMLC_PS_ROOT_PORT": str(PORT),
        "DMLC_NUM_SERVER": str(layout.servers * len(addresses)),
        "DMLC_NUM_WORKER": str(layout.workers * len(addresses)),
        "DMLC_NODE_HOST": addresses[node],
        "LC_ALL": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
    }


def without_port(command: Sequence[str]) -> tuple[str, ...]:
    """Return the words that start a command without PORT, on which the store would listen in place of a port of its own."""
    return ("env", "-u", "PORT", *command)


def ranks(run: Run, layout: Layout) -> tuple[str, ...]:
    """Return the address of each worker."""
    return tuple(address for address in run.world.addresses for _ in range(layout.workers))
