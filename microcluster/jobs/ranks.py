"""The program of the ranks, in the training and in the preflight, whatever starts it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from microcluster.jobs.run_plan import DEFAULT_MODEL_BYTES, Argv, World


@dataclass(frozen=True)
class Program:
    """The program that every rank runs.

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
    probe = (program.python, agent, "launch.probe", world.interface, config, size, started_by, str(world.ordered_gpus))
    return {"processes": noted + program.words, "resume_processes": noted + program.resumed, "collective": probe}


def environment(world: World) -> dict[str, str]:
    """Return what every process gets beside its own variables and the run's mark, where mpirun does not start it.

    torchrun itself starts Python unbuffered, but not a command that it is given whole; buffered output comes hours late. Without ``=``
    NCCL takes eth1 for the beginning of a name, and uses eth10 too. A network is replaced on each node: `node_facts.name_cards`.
    """
    card = world.interface
    cards = {"GLOO_SOCKET_IFNAME": card, "NCCL_SOCKET_IFNAME": f"={card}", "TP_SOCKET_IFNAME": card}
    return {**cards, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
