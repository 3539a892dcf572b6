"""Command of the ranks, in the training and in the preflight, for every launcher."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.run.document import Machines, RunDocument

DEFAULT_MODEL_BYTES = 64_000_000
"""Bytes that the preflight adds up for a model of unknown size."""
MEETING_PORT = 20000
"""First port of the ranks' meeting place, below 32768, from where on a system gives ports away for connections."""
Argv = tuple[str, ...]


@dataclass(frozen=True)
class RankCommand:
    """Command of every rank.

    Attributes:
        words, resumed: argv of a start from the beginning and of one from the newest checkpoint.
        python: interpreter of the agent's probe in the preflight, which reads ``config_file`` and adds up ``model_bytes``.
        title, secrets: fields of the document's program.
        variables: environment beside the variables of the launcher of the ranks.
    """

    words: Argv
    resumed: Argv
    python: str
    config_file: str
    model_bytes: int = DEFAULT_MODEL_BYTES
    variables: Mapping[str, str] = field(default_factory=dict)
    title: str = ""
    secrets: Argv = ()


def commands(begun: RunDocument, command: RankCommand, started_by: str, gpus: int | None = None) -> dict[str, Argv]:
    """Return the argv of each rank by the document's field: wrapped, so that its end is noted on its node, or the preflight's probe.

    Args:
        started_by: the launcher of the ranks, as the agent's probe calls it.
        gpus: GPUs that the probe has to find on each node; 0 for any number, None for those that were ordered.
    """
    agent, machines = f"{begun.folder}/agent", begun.machines
    if gpus is None:
        gpus = machines.slots if machines.gpu else 0
    noted = ("python3", agent, "launch.rank_wrapper", f"{begun.folder}/ranks_ended.jsonl")
    config, size = f"{begun.folder}/{command.config_file}", str(command.model_bytes)
    probe = (command.python, agent, "launch.probe", machines.interface, config, size, started_by, str(gpus))
    return {"processes": noted + command.words, "resume_processes": noted + command.resumed, "collective": probe}


def environment(machines: Machines) -> dict[str, str]:
    """Return the variables of every process that mpirun does not start, beside its own and the run's mark.

    torchrun itself starts Python unbuffered, but not a command that it is given whole; buffered output comes hours late. Without ``=``
    NCCL takes eth1 for the beginning of a name, and uses eth10 too. A network is replaced on each node: `node_facts.name_cards`.
    """
    card = machines.interface
    cards = {"GLOO_SOCKET_IFNAME": card, "NCCL_SOCKET_IFNAME": f"={card}", "TP_SOCKET_IFNAME": card}
    return {**cards, "NCCL_DEBUG": "INFO", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
