"""Ranks over torchrun: one agent on every node, held to the private network. See docs/decisions/running-a-job.md.

The rendezvous is static: the first node is its host because its number is 0, and every rank learns the endpoint's address. The
backend c10d guesses both from names, orders the nodes by text, and 1.13 cannot be given an address. Nothing is restarted by
torchrun, whose restarts hang (launchers.md, 8): an attempt ends with its first rank, and the supervisor goes on from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent import spec
from microcluster.jobs.values import Process, Run, World

ROLE = "torchrun-agent"
WORLD = "torch_world"
"""The agent's module that knows such a rank's place."""
PORT = 48123
"""On the first node; the ranks' other ports are ephemeral."""
JOIN_TIMEOUT_S = 120


def environment(world: World) -> dict[str, str]:
    """Return what every agent and rank gets beside its own environment and the run's mark."""
    cards = {f"{library}_SOCKET_IFNAME": world.interface for library in ("GLOO", "NCCL", "TP")}
    # Off since 2.1 shares one store between the agents and the ranks, in which addresses of dead ranks stay.
    return {**cards, "NCCL_DEBUG": "INFO", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "LC_ALL": "C.UTF-8"}


def torchrun(world: World, node: int, command: Sequence[str]) -> tuple[str, ...]:
    """Return the argv of the agent on one node, which starts ``command`` on each of its slots.

    The options are spelt as 1.13 to 2.13 take them.
    """
    return (
        *("python", "-m", "torch.distributed.run"),
        *("--nnodes", str(len(world.addresses)), "--nproc_per_node", str(world.slots), "--node_rank", str(node)),
        *("--rdzv_backend", "static", "--rdzv_endpoint", f"{world.addresses[0]}:{PORT}"),
        *("--rdzv_id", spec.ATTEMPT, "--rdzv_conf", f"timeout={JOIN_TIMEOUT_S}"),
        *("--max_restarts", "0", "--no_python"),
        # Nothing is redirected. 1.13 on Python 3.11 does not take its own default, 0, and takes a rank that is none.
        *("--redirects", f"{world.slots}:1", "--tee", f"{world.slots}:1"),
        *command,
    )


def on_every_node(run: Run, command: Sequence[str]) -> list[Process]:
    """Return the agents, of which the first to fail ends the run."""
    nodes = range(len(run.world.addresses))
    return [Process(ROLE, node, torchrun(run.world, node, command), environment(run.world)) for node in nodes]
