"""Ranks over Open MPI: the argv that starts one command on every slot, held to the private network."""

from collections.abc import Mapping, Sequence

from agent.kill_run import RUN_VARIABLE
from microcluster.jobs.plan import Process, World

RSH_AGENT = "sh /run/microcluster/ssh"
"""The words of mpirun's remote shell; by `sh`, because Ubuntu mounts /run without the right to execute files there."""
WORLD = "mpi"
"""What starts such ranks, as the agent's probe calls it."""
KEEPALIVE = (
    *("-mca", "oob_tcp_keepalive_time", "20", "-mca", "oob_tcp_keepalive_intvl", "5"),
    *("-mca", "oob_tcp_keepalive_probes", "4"),
)
"""A cut network ends the ranks on both sides after 40 s; Open MPI's own five minutes and more cost money."""


def on_every_rank(
    world: World, command: Sequence[str], variables: Mapping[str, str] | None = None
) -> tuple[Process, ...]:
    """Return the process on the launcher that starts ``command`` on every slot, with ``variables`` in its environment.

    Every line bears its rank, so that a dead rank's last words can be told from the others'. PYTHONUNBUFFERED stays unset: with it
    the lines of several ranks get mixed up. LD_LIBRARY_PATH and the like of the image reach ranks on other hosts by the ssh
    environment that start.sh writes there.
    """
    variables = variables or {}
    own = {"NCCL_SOCKET_IFNAME": world.interface, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8"}
    given = [f"{name}={value}" for name, value in own.items()]
    exports = [word for export in (*given, "PATH", RUN_VARIABLE, *variables) for word in ("-x", export)]
    host_slots = ",".join(f"{address}:{world.slots}" for address in world.addresses)
    argv = (
        *("mpirun", "--allow-run-as-root", "-np", str(len(world.ranks)), "-H", host_slots),
        *("-bind-to", "none", "-map-by", "slot"),
        *("-mca", "plm_rsh_agent", RSH_AGENT),
        *("-mca", "pml", "ob1", "-mca", "btl", "^openib"),
        *("-mca", "btl_tcp_if_include", world.interface, "-mca", "oob_tcp_if_include", world.interface),
        *KEEPALIVE,
        "--tag-output",
        *exports,
        *command,
    )
    return (Process("rank", 0, argv, {**own, **variables}),)
