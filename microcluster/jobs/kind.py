"""The contract of a job kind, and the registry of kinds by the name that ``job.kind`` gives.

A kind is pure: it says what a job consists of, and nothing outside this package asks which kind it is.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from microcluster.jobs.cluster_facts import Container, Job

KINDS = {name: f"microcluster.jobs.{name}" for name in ("openseq2seq", "horovod", "torchrun")}
"""The module of each kind, which holds it as KIND."""
DEFAULT = "openseq2seq"
"""Of facts and run folders that were written before there was a second kind."""
DEFAULT_MODEL_BYTES = 64_000_000
"""What the preflight adds up for a model of unknown size."""
GRADIENT_BYTES = 4
"""Gradients travel in 32 bits in mixed precision as well: the frameworks cast them before they are added up."""
MOST_STEPS = 10_000_000
Runtime = Literal["container", "host"]
"""Where a run's processes run: in the training container, or on the machine itself, in an environment that the run makes there."""
Sections = Mapping[str, Any]
"""The sections of a stack file as they are written, some of them filled in, none of them validated."""


@dataclass(frozen=True)
class Origin:
    """A value that follows from others, and why."""

    value: Any
    reason: str


@dataclass(frozen=True)
class Hardware:
    """What a kind may make its defaults of.

    Attributes:
        precision: in which the cluster's GPUs compute fastest.
        local_program: what the local training image holds beside the stand-in, as `make images` wrote it down.
    """

    precision: str | None = None
    local_program: str | None = None


@dataclass(frozen=True)
class ImageAdditions:
    """What the stack file adds to the base: pinned requirements of Python, and a repository at a commit."""

    requirements: tuple[str, ...] = ()
    repository: str | None = None
    commit: str | None = None


@dataclass(frozen=True)
class Image:
    """The image that the ranks run in: its Dockerfile, what trains in it, and the folder where that starts.

    Attributes:
        folder: None for a program that lies in the run's folder.
    """

    dockerfile: str
    program: str
    folder: str | None


@dataclass(frozen=True)
class PinnedSource:
    """A program's source for the local training image: where it comes from, and which commit it is.

    Attributes:
        variable: of the environment, which names another place, or `none`.
        folder: its name in the image's build context.
        content: the hash of the files ``parts`` at that commit, by `microcluster.setup.image_inputs.input_hash`.
        parts: what goes into the image; the rest is documentation and other programs.
    """

    program: str
    variable: str
    repository: str
    commit: str
    short_commit: str
    content: str
    parts: tuple[str, ...]
    folder: str

    @property
    def name(self) -> str:
        """What the log, `fab status` and the report call it; the run's id depends on it."""
        return f"{self.program} {self.short_commit}"


@dataclass(frozen=True)
class AgentModule:
    """A module of the agent's readers or checkpoints, with its options."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DataPlan:
    """The data of a job.

    Attributes:
        id: what names the data: the files that were brought, else what a recipe makes.
        folder: where they lie on every host, below the mount point.
        pairs: files of which each line has to have its partner.
        vocabulary: a file and the number of its lines.
        needed: those without which a trained model cannot be used.
        recipe: how agent/staging.py makes them, where the stack file brings none.
        largest_bytes: of a tar with finished files.
    """

    id: str
    folder: str
    files: tuple[str, ...]
    optional: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    vocabulary: tuple[str, int]
    needed: tuple[str, ...]
    recipe: Mapping[str, Any]
    largest_bytes: int


@dataclass(frozen=True)
class Workload:
    """What planning has to know of one step: whose measurements hold, and how much is computed and exchanged.

    Attributes:
        name: the model, as the GPU's row in the catalog names it.
        units: samples that each GPU computes in a step.
        gradient_bytes: what every rank exchanges in a step.
    """

    name: str
    precision: str
    units: int
    gradient_bytes: int


@dataclass(frozen=True)
class World:
    """Where the ranks run: private addresses in rank order, slots on each, and the network card between them."""

    addresses: tuple[str, ...]
    slots: int
    interface: str

    def __post_init__(self) -> None:
        """Refuse what mpirun would take for something else: a blank in -H makes an address the program."""
        if not self.addresses or self.slots < 1:
            raise ValueError(f"a world of {len(self.addresses)} hosts with {self.slots} slots has no ranks")
        for address in self.addresses:
            if not ipaddress.IPv4Address(address).is_private:
                raise ValueError(f"{address} is no private address; ranks talk over the private network only")

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.addresses) * self.slots

    @property
    def host_slots(self) -> str:
        """The value of mpirun's -H."""
        return ",".join(f"{address}:{self.slots}" for address in self.addresses)


@dataclass(frozen=True)
class Run:
    """What a kind sees of one run.

    Attributes:
        id: the run's name, under which a service outside may know it too.
        path: the run's folder, on every host.
        folder: where the program starts, on every host.
        wrapper: words before a rank's own argv: a program of the agent that notes how the rank ended.
        secrets: the folder, in memory, with a file for each of the kind's secrets that was given.
    """

    id: str
    job: Any
    world: World
    path: str
    folder: str
    mount_point: str
    wrapper: tuple[str, ...] = ()
    secrets: str = ""


@dataclass(frozen=True)
class Process:
    """One program of a run.

    Attributes:
        node: the number of the node that starts it, in rank order.
        order: a lower one starts first.
        ends_run: whether the run ends when this process ends.
    """

    role: str
    node: int
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    order: int = 0
    ends_run: bool = True


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


@dataclass(frozen=True)
class Schedule:
    """How often the program tells of itself, as far as it is known; ``mixed`` says that overflowing steps are skipped."""

    eval_steps: int | None = None
    print_steps: int = 0
    mixed: bool = False


class Section(BaseModel):
    """What every kind's ``job`` section holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    kind: StrictStr
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    preflight: StrictStr = "run"


def _refuse(value: str) -> str:
    raise ValueError(f"{value[:80]!r} is no kind of job; one of {', '.join(KINDS)}")


class UnknownKind(BaseModel):
    """The ``job`` section of a kind that does not exist: nothing else in it can be judged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: Annotated[StrictStr, AfterValidator(_refuse)]


@dataclass(frozen=True)
class Score:
    """How well a text was translated: a name for programs, and words for people with how it was computed."""

    name: str
    value: float
    text: str
    signature: str


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


class JobKind(Protocol):
    """The whole of what a kind of job says."""

    name: str
    runtimes: tuple[Runtime, ...]
    """Those that it can run in; which one it is follows from what the account's machines have."""
    section: type[Section]
    """What the stack file may say."""
    facts: type[Job]
    """What steps and verbs know of the job; a field that the section has too is taken from there."""
    metrics: tuple[Metric, ...]
    stop_order: tuple[str, ...]
    """Roles, first to last: those of one role are ended on all nodes before those of the next."""
    meeting_port: int | None
    """On the first node, where the processes of all others look for it; None where it is another one each time."""
    artifacts: tuple[str, ...]
    """Folders of the run's folder in which the program leaves what is fetched, beside the checkpoints."""
    config_file: str
    """The one of the run's files that every rank reads, and that the report shows."""
    checkpoint_files: str
    """What a checkpoint is made of, for the report."""
    translator: Translator | None
    local_source: PinnedSource | None
    """What `make images` puts into the local training image beside the stand-in."""

    def defaults(self, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Return what follows for keys such as "job.maxSteps" that the stack file leaves out."""

    def problems(self, sections: Sections, *, ordering: bool) -> list[str]:
        """Say what the section's types cannot: what contradicts the other sections."""

    def source(self, section: Any) -> str | None:
        """Return the folder of the operator's computer whose texts travel with the job."""

    def additions(self, section: Any) -> ImageAdditions | None:
        """Return what the section adds to the image."""

    def describe(self, job: Job) -> str:
        """Say in a few words what is trained, for the report."""

    def image(self, container: Container) -> Image:
        """Return the image on the container's base."""

    def environment(self, job: Job, folder: str, program: str) -> str | None:
        """Return the shell program that makes ``folder`` the run's own environment on a machine without containers.

        Args:
            program: the folder where the program starts, which has to be there afterwards.
        """

    def secrets(self, job: Job) -> tuple[str, ...]:
        """Return the environment variables of the operator that the program may be given, never written down."""

    def data(self, job: Job, mount_point: str) -> DataPlan | None:
        """Return the data, or None for a program that brings its own."""

    def identity(self, job: Job, mount_point: str) -> Mapping[str, object]:
        """Return what makes the run another one when it changes, without ``max_steps``, image and world."""

    def files(self, run: Run) -> Mapping[str, str]:
        """Return what is written into the run's folder, by name."""

    def processes(self, run: Run, *, resume: bool) -> Sequence[Process]:
        """Return what runs where; ``resume`` goes on from the newest checkpoint."""

    def collective(self, run: Run, argv: Sequence[str]) -> Sequence[Process]:
        """Return what starts ``argv`` as every rank, to prove in the preflight that each reaches every other."""

    def reader(self, job: Job) -> AgentModule:
        """Return what turns lines of the log into events."""

    def checkpoints(self, job: Job) -> AgentModule:
        """Return what knows a whole checkpoint from a torn one."""

    def schedule(self, job: Job) -> Schedule:
        """Return how often the program tells of itself."""

    def workload(self, job: Job | Section) -> Workload | None:
        """Return what a step computes and exchanges, or None for what nobody has measured."""

    def model_bytes(self, job: Job) -> int:
        """Return what all ranks add up in a step, about."""

    def checkpoint_bytes(self, job: Job) -> int:
        """Return the size of a checkpoint, about; 0 when nobody knows."""

    def learning_rate(self, job: Job, step: int) -> float | None:
        """Return the planned rate of a step, or None where only the program knows it."""

    def warmup_steps(self, job: Job) -> int:
        """Return in how many steps the learning rate rises."""


def kind_of(name: str | None) -> JobKind:
    """Return the kind of that name; the names are those of KINDS."""
    return import_module(KINDS[name or DEFAULT]).KIND


def section_of(job: Any) -> type[BaseModel]:
    """Return what the ``job`` section of a stack file has to be, by the kind that it names."""
    named = job.get("kind") if isinstance(job, Mapping) else None
    return kind_of(named).section if isinstance(named, str) and named in KINDS else UnknownKind
