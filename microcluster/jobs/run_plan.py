"""The plan of a run: all that is decided about it, once, as one value, from the section of its job and the world it will run in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from microcluster.jobs.folder_tree import FolderTree

DEFAULT_MODEL_BYTES = 64_000_000
"""Bytes that the preflight adds up for a model of unknown size."""
MEETING_PORT = 20000
"""Below 32768, from where on a system gives ports away for connections."""
Argv = tuple[str, ...]


@dataclass(frozen=True)
class SourceFile:
    """One text of the user's own program, in facts of an earlier version: its path below the source, and its content."""

    name: str
    text: str


@dataclass(frozen=True)
class World:
    """Place of a run: its ranks' private addresses in their order, slots on each, the network card or network between them, and its folder.

    Attributes:
        path: the run's folder, on every host; the program's checkpoints belong into ``logdir``.
        run: the run's id; ``word`` was drawn when it began: the same configuration trained again has another one.
        image: the base on which the container's image is built; None where the processes run on the machine itself.
        trainer: what trains in the local training image; None in every other one.
        data_id: of data that the user brings.
        tree: the folder of the user's own program, where it travels with the job; ``texts`` was it in an earlier version.
        secrets: the folder, in memory, with a file for each secret that was given.
        ordered_gpus: of each node; 0 where the program's GPUs are its own matter.
    """

    addresses: tuple[str, ...]
    slots: int
    interface: str = "eth0"
    path: str = ""
    logdir: str = ""
    run: str = ""
    word: str = ""
    mount_point: str = "/data"
    image: str | None = None
    trainer: str | None = None
    data_id: str | None = None
    texts: tuple[SourceFile, ...] = ()
    tree: FolderTree | None = None
    secrets: str = ""
    ordered_gpus: int = 0


@dataclass(frozen=True)
class Process:
    """One program of a run.

    Attributes:
        node: the number of the node that starts it, in rank order.
        order: a lower one starts first.
        name: such as "server 1", where several processes have one role: it stands in front of every line of the log, and names
            the process when it dies.
        ends_run: whether the run ends when this process ends.
    """

    role: str
    node: int
    argv: Argv
    environment: Mapping[str, str]
    order: int = 0
    ends_run: bool = True
    name: str = ""


NO_CHECKPOINTS = "none"
"""The agent's word for a program that writes none: a run that ends early starts over."""


@dataclass(frozen=True)
class DataPlan:
    """The data of a job.

    Attributes:
        id: what names the data: the files that were brought, else what a recipe makes.
        folder: where they lie on every host, below the mount point.
        pairs: files of which each line has to have its partner.
        vocabulary: a file and the number of its lines; None for a program that makes its own of the texts.
        needed: those without which a trained model cannot be used.
        recipe: how agent/data/staging.py makes them, where the stack file brings none.
        largest_bytes: of a tar with finished files.
        words: a file and how many different words it has to hold, the end of a line one of them.
        content: the folder, in theirs, of data that are taken whole, with their folders; None where ``files`` are all.
    """

    id: str
    folder: str
    files: tuple[str, ...]
    recipe: Mapping[str, Any]
    largest_bytes: int
    optional: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    vocabulary: tuple[str, int] | None = None
    needed: tuple[str, ...] = ()
    words: tuple[str, int] | None = None
    content: str | None = None


@dataclass(frozen=True)
class Metric:
    """A figure that status, watch and report show beside the training and the validation loss.

    Attributes:
        name: its key in a program's output.
        label: what a person reads.
        event, key: the event of an evaluation that holds it; by default {"event": "metric", "name": ..., "value": ...}.
        scalar: its name in TensorBoard's files, where no event holds it.
        note: what a person has to know of it, for the caption of its chart.
    """

    name: str
    label: str
    event: str = "metric"
    key: str = "value"
    scalar: str | None = None
    note: str = ""


def unknown_rate(step: int) -> float | None:
    """Return no learning rate: only the program knows it."""


@dataclass(frozen=True)
class Plan:
    """All that is decided about a run; what the agent has to know of it bears the names of `agent.run.document`.

    Attributes:
        title: what is trained, in a few words.
        trainer: the program that trains; ``program_folder`` is where it starts, on every host.
        files: what is written into the run's folder, by name; ``config_file`` is the one that every rank reads and the report shows, and
            that makes the run another one when more than ``max_steps`` changes in it.
        processes, resume_processes: what runs where, from the beginning and from the newest checkpoint.
        collective: what starts the preflight's program as every rank, to prove that each reaches every other.
        reader: the agent's module that turns lines of the log into events.
        checkpoints: the agent's module that knows a whole checkpoint from a torn one; ``checkpoint_files`` is what one is made of, for
            the report.
        ranks: the address of each process that computes, in the order of their numbers; empty where every slot has one.
        make_environment: the argv that makes the run's own environment on a machine without containers.
        setup: each line that runs on every node after that, as a person wrote it, and the script that runs it once there.
        imports: the argv that looks for what the program imports, where another program than ours trains.
        data: None for a program that brings its own.
        unit: what one of the run's steps is: "step" (an update), or "epoch".
        result: the metric that a good run ends with; None where its last checkpoint is enough.
        any_world: whether another number of nodes or slots goes on with the run, which then is the same one.
        exit_code_decides: whether a run that ended with exit code 0 has finished, whatever its log and its checkpoints say.
        stop_order: roles, first to last: those of one role are ended on all nodes before those of the next.
        stop_grace_s: how long `fab stop` waits for a program that ends once its run's folder holds STOP_FILE; 0 for any other.
        meeting_port: the first of the ports of which the agent takes a free one, on the first node, where all others look for it; None
            where they need none.
        artifacts: folders of the run's folder in which the program leaves what is fetched, beside the checkpoints.
        secrets: the environment variables of the operator that the program may be given, never written down.
        not_shown: which figures of the run status, watch and report will lack.
        translator: what translates with the run's model and scores it, such as `openseq2seq.translation`.
        eval_steps, print_steps: between evaluations, and between lines with a loss.
        mixed: whether overflowing steps are skipped.
        model_bytes: what all ranks add up in a step, about; where nobody knows, enough to see the network work.
        checkpoint_bytes: the size of a checkpoint, about; 0 when nobody knows.
        learning_rate: the planned rate by step, counted from 1.
        warmup_steps: in how many of them it rises; 0 where it never does, or nobody knows.
        schedule: how the configuration makes the rate move, and why, in sentences for the report.
    """

    title: str
    trainer: str
    program_folder: str
    config_file: str
    files: Mapping[str, str]
    reader: str
    checkpoint_files: str
    processes: Sequence[Process] = ()
    resume_processes: Sequence[Process] = ()
    collective: Sequence[Process] = ()
    ranks: Sequence[str] = ()
    reader_options: Mapping[str, str] = field(default_factory=dict)
    checkpoints: str = NO_CHECKPOINTS
    checkpoint_options: Mapping[str, Any] = field(default_factory=dict)
    make_environment: Sequence[str] | None = None
    setup: Sequence[tuple[str, str]] = ()
    imports: Sequence[str] = ()
    data: DataPlan | None = None
    metrics: tuple[Metric, ...] = ()
    unit: str = "step"
    result: str | None = None
    any_world: bool = False
    exit_code_decides: bool = False
    stop_order: tuple[str, ...] = ("rank",)
    stop_grace_s: int = 0
    meeting_port: int | None = None
    artifacts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    not_shown: tuple[str, ...] = ()
    translator: ModuleType | None = None
    eval_steps: int | None = None
    print_steps: int = 0
    mixed: bool = False
    model_bytes: int = DEFAULT_MODEL_BYTES
    checkpoint_bytes: int = 0
    learning_rate: Callable[[int], float | None] = unknown_rate
    warmup_steps: int = 0
    schedule: str = "Why is the program's own matter: no section of the stack file holds its schedule."
