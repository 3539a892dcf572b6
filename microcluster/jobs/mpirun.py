"""Words and options of mpirun: a program on every slot, held to the private network."""

from collections.abc import Mapping

from agent.kill_run import RUN_VARIABLE
from agent.run.document import Machines, Process, RunDocument
from microcluster.jobs.ranks import Argv, RankCommand, commands

RSH_AGENT = "sh /run/microcluster/ssh"
"""The words of mpirun's remote shell; by `sh`, because Ubuntu mounts /run without the right to execute files there."""
OPTIONS = (
    "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib --tag-output "
    # A cut network ends the ranks on both sides after 40 s; Open MPI's own five minutes and more cost money.
    "-mca oob_tcp_keepalive_time 20 -mca oob_tcp_keepalive_intvl 5 -mca oob_tcp_keepalive_probes 4"
)


def by_mpirun(begun: RunDocument, command: RankCommand) -> dict[str, list[Process]]:
    """Return the processes of the run by the document's field: one mpirun on the launcher each time."""
    ranks = commands(begun, command, "mpi")
    return {name: [mpirun(begun.machines, argv, command.variables)] for name, argv in ranks.items()}


def mpirun(machines: Machines, command: Argv, variables: Mapping[str, str]) -> Process:
    """Return the process on the launcher that starts ``command`` on every slot, with ``variables`` in its environment.

    Every line bears its rank, so that a dead rank's last words can be told from the others'. PYTHONUNBUFFERED stays unset: with it
    the lines of several ranks get mixed up. LD_LIBRARY_PATH and the like of the image reach ranks on other hosts by the ssh
    environment that start.sh writes there. Open MPI compares a card's whole name, and takes a network as well.
    """
    card = machines.interface
    own = {"NCCL_SOCKET_IFNAME": f"={card}", "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8"}
    exports = [f"{name}={value}" for name, value in own.items()]
    exports += ["PATH", RUN_VARIABLE, *variables]
    argv = ["mpirun", "--allow-run-as-root", "-np", str(len(machines.addresses) * machines.slots), "-H"]
    argv += [",".join(f"{address}:{machines.slots}" for address in machines.addresses), *OPTIONS.split()]
    argv += ["-mca", "plm_rsh_agent", RSH_AGENT, "-mca", "btl_tcp_if_include", card, "-mca", "oob_tcp_if_include", card]
    for export in exports:
        argv += ["-x", export]
    return Process("rank", 0, (*argv, *command), {**own, **variables})
