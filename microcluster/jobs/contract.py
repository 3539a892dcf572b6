"""The contract of a job kind.

A kind is pure: it says what a job consists of, and nothing outside this package asks which kind it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from microcluster.jobs.values import (
    DEFAULT_MODEL_BYTES,
    AgentModule,
    DataPlan,
    Hardware,
    Image,
    ImageAdditions,
    Metric,
    Origin,
    PinnedSource,
    Process,
    Run,
    Runtime,
    Schedule,
    Score,
    Section,
    Sections,
    Workload,
)

if TYPE_CHECKING:
    from microcluster.jobs.cluster_facts import Container, Job


class Translator(Protocol):
    """What turns sentences into others with a run's model."""

    MAX_LENGTH: int
    """In pieces; what is longer is cut."""
    CHECKPOINT: str
    """How the name of the one file of a checkpoint ends by which it is named."""
    PIECES: str
    VOCABULARY: str
    """Where a fetched run has what cuts sentences into pieces, and their list."""

    def board_files(self, config: str) -> Mapping[str, str]:
        """Return what a board needs beside a fetched run to translate with it, by name."""

    def pointer(self, checkpoint: str) -> Mapping[str, str]:
        """Return the files of a log folder of which the program reads the checkpoint with this path, by name."""

    def inference(self, config_file: str, logdir: str, output: str) -> tuple[str, ...]:
        """Return the argv that translates what the configuration names."""

    def infer_params(self, vocabulary: str, source: str, *, batch: int = 16) -> str:
        """Return what is added to a run's configuration."""

    def score(self, lines: Sequence[str], reference: Sequence[str]) -> Score:
        """Compare translations with a reference."""


class JobKind(ABC):
    """The whole of what a kind of job says; what it leaves out is as here."""

    name: str
    runtimes: tuple[Runtime, ...]
    """Those that it can run in; which one it is follows from what the account's machines have."""
    section: type[Section]
    """What the stack file may say."""
    facts: "type[Job]"
    """What steps and verbs know of the job; a field that the section has too is taken from there."""
    metrics: tuple[Metric, ...] = ()
    unit: str = "step"
    """What one of the run's steps is: "step" (an update), or "epoch"."""
    result: str | None = None
    """The metric that a good run ends with; None where its last checkpoint is enough."""
    stop_order: tuple[str, ...] = ("rank",)
    """Roles, first to last: those of one role are ended on all nodes before those of the next."""
    meeting_port: int | None = None
    """On the first node, where the processes of all others look for it; None where it is another one each time."""
    exit_code_decides: bool = False
    """Whether a run that ended with exit code 0 has finished, whatever its log and its checkpoints say."""
    artifacts: tuple[str, ...] = ()
    """Folders of the run's folder in which the program leaves what is fetched, beside the checkpoints."""
    config_file: str
    """The one of the run's files that every rank reads, and that the report shows."""
    checkpoint_files: str
    """What a checkpoint is made of, for the report."""
    translator: Translator | None = None
    local_source: PinnedSource | None = None
    """What `make images` puts into the local training image beside the stand-in."""

    def defaults(self, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Return what follows for keys such as "job.maxSteps" that the stack file leaves out."""
        return {}

    @abstractmethod
    def problems(self, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what the section's types cannot: what contradicts the other sections, which are filled in."""

    def source(self, section: Any) -> str | None:
        """Return the folder of the operator's computer whose texts travel with the job, or None where the image holds the program."""
        return None

    def additions(self, section: Any) -> ImageAdditions | None:
        """Return what the section adds to the image, or None where the Dockerfile holds everything."""
        return None

    @abstractmethod
    def describe(self, job: "Job") -> str:
        """Say in a few words what is trained, for the report."""

    @abstractmethod
    def image(self, container: "Container") -> Image:
        """Return the image on the container's base."""

    def environment(self, job: "Job", folder: str, program: str) -> str | None:
        """Return the shell program that makes ``folder`` the run's own environment on a machine without containers.

        None for a program that runs in its image only.

        Args:
            program: the folder where the program starts, which has to be there afterwards.
        """
        return None

    def secrets(self, job: "Job") -> tuple[str, ...]:
        """Return the environment variables of the operator that the program may be given, never written down."""
        return ()

    def data(self, job: "Job", mount_point: str) -> DataPlan | None:
        """Return the data, or None for a program that brings its own."""
        return None

    @abstractmethod
    def identity(self, job: "Job", mount_point: str) -> Mapping[str, object]:
        """Return what makes the run another one when it changes, without ``max_steps``, image and world."""

    @abstractmethod
    def files(self, run: Run) -> Mapping[str, str]:
        """Return what is written into the run's folder, by name."""

    @abstractmethod
    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return what runs where; ``resume`` goes on from the newest checkpoint."""

    def ranks(self, run: Run) -> Sequence[str]:
        """Return the address of each process that computes, in the order of their numbers; by default one for each slot."""
        return run.world.ranks

    @abstractmethod
    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return what starts ``argv`` as every rank, to prove in the preflight that each reaches every other."""

    @abstractmethod
    def reader(self, job: "Job") -> AgentModule:
        """Return what turns lines of the log into events."""

    @abstractmethod
    def checkpoints(self, job: "Job") -> AgentModule:
        """Return what knows a whole checkpoint from a torn one."""

    def not_shown(self, job: "Job") -> Sequence[str]:
        """Say which figures of the run status, watch and report will lack."""
        return ()

    def imports(self, run: Run) -> Sequence[str] | None:
        """Return the argv that imports what the program imports, where another one than ours trains."""
        return None

    def stop_grace_s(self, job: "Job") -> int:
        """Return how long `fab stop` waits for a program that ends once its run's folder holds STOP_FILE; 0 for any other."""
        return 0

    def schedule(self, job: "Job") -> Schedule:
        """Return how often the program tells of itself, where it is known beforehand."""
        return Schedule()

    def workload(self, job: "Job | Section") -> Workload | None:
        """Return what a step computes and exchanges, or None for what nobody has measured."""
        return None

    def model_bytes(self, job: "Job") -> int:
        """Return what all ranks add up in a step, about; where nobody knows, enough to see the network work."""
        return DEFAULT_MODEL_BYTES

    def checkpoint_bytes(self, job: "Job") -> int:
        """Return the size of a checkpoint, about; 0 when nobody knows."""
        return 0

    def learning_rate(self, job: "Job", step: int) -> float | None:
        """Return the planned rate of a step, or None where only the program knows it."""
        return None

    def warmup_steps(self, job: "Job") -> int:
        """Return in how many steps the learning rate rises; 0 where it never does, or nobody knows."""
        return 0
