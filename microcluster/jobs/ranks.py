"""What every rank runs, and how Open MPI starts it on every slot, held to the private network."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.kill_run import RUN_VARIABLE
from microcluster.jobs.run_plan import DEFAULT_MODEL_BYTES, Argv, Process, World

RSH_AGENT = "sh /run/microcluster/ssh"
"""The words of mpirun's remote shell; by `sh`, because Ubuntu mounts /run without the right to execute files there."""
OPTIONS = (
    "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib --tag-output "
    # A cut network ends the ranks on both sides after 40 s; Open MPI's own five minutes and more cost money.
    "-mca oob_tcp_keepalive_time 20 -mca oob_tcp_keepalive_intvl 5 -mca oob_tcp_keepalive_probes 4"
)


@dataclass(frozen=True)
class Program:
    """What every rank runs.

    Attributes:
        words, resumed: in the training, from the beginning and from the newest checkpoint.
        python: what runs the agent's probe in the preflight, which reads ``config_file`` and adds up ``model_bytes``.
        variables: of the environment, beside those of what starts the ranks.
    """

    words: Argv
    resumed: Argv
    python: str
    config_file: str
    model_bytes: int = DEFAULT_MODEL_BYTES
    variables: Mapping[str, str] = field(default_factory=dict)


def commands(world: World, program: Program, started_by: str) -> dict[str, Argv]:
    """Return what each rank runs, by the plan's names of where: wrapped, so that its end is noted on its node, or in the preflight.

    Args:
        started_by: what starts the ranks, as the agent's probe calls it.
    """
    agent = f"{world.path}/agent"
    noted = ("python3", agent, "launch.rank_wrapper", f"{world.path}/ranks_ended.jsonl")
    config, size = f"{world.path}/{program.config_file}", str(program.model_bytes)
    probe = (program.python, agent, "launch.probe", world.interface, config, size, started_by)
    return {"processes": noted + program.words, "resume_processes": noted + program.resumed, "collective": probe}


def environment(world: World) -> dict[str, str]:
    """Return what every process gets beside its own variables and the run's mark, where mpirun does not start it.

    torchrun itself starts Python unbuffered, but not a command that it is given whole; buffered output comes hours late.
    """
    cards = {f"{library}_SOCKET_IFNAME": world.interface for library in ("GLOO", "NCCL", "TP")}
    return {**cards, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}


def by_mpirun(world: World, program: Program) -> dict[str, list[Process]]:
    """Return the part of the plan that starts the program: one mpirun on the launcher each time."""
    ranks = commands(world, program, "mpi")
    return {name: [mpirun(world, command, program.variables)] for name, command in ranks.items()}


def mpirun(world: World, command: Argv, variables: Mapping[str, str]) -> Process:
    """Return the process on the launcher that starts ``command`` on every slot, with ``variables`` in its environment.

    Every line bears its rank, so that a dead rank's last words can be told from the others'. PYTHONUNBUFFERED stays unset: with it
    the lines of several ranks get mixed up. LD_LIBRARY_PATH and the like of the image reach ranks on other hosts by the ssh
    environment that start.sh writes there.
    """
    card = world.interface
    own = {"NCCL_SOCKET_IFNAME": card, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8"}
    exports = [f"{name}={value}" for name, value in own.items()]
    exports += ["PATH", RUN_VARIABLE, *variables]
    argv = ["mpirun", "--allow-run-as-root", "-np", str(len(world.addresses) * world.slots), "-H"]
    argv += [",".join(f"{address}:{world.slots}" for address in world.addresses), *OPTIONS.split()]
    argv += ["-mca", "plm_rsh_agent", RSH_AGENT, "-mca", "btl_tcp_if_include", card, "-mca", "oob_tcp_if_include", card]
    for export in exports:
        argv += ["-x", export]
    return Process("rank", 0, (*argv, *command), {**own, **variables})
