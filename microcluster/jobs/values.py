"""What a kind of job says, and what it is told, as plain values."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from agent.batch import grant

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
        local_programs: what the local training image holds beside the stand-ins, as `make images` wrote it down.
        ranks: one for each GPU of the cluster; None where its section says too little.
    """

    precision: str | None = None
    local_programs: tuple[str, ...] = ()
    ranks: int | None = None


@dataclass(frozen=True)
class ImageAdditions:
    """What the stack file adds to the base: pinned requirements of its interpreter, and a repository at a commit."""

    requirements: tuple[str, ...] = ()
    repository: str | None = None
    commit: str | None = None
    python: str | None = None


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
        release: what people call the commit.
        variable: of the environment, which names another place, or `none`.
        folder: its name in the image's build context.
        content: the hash of the files ``parts`` at that commit, by `microcluster.setup.image_build.input_hash`.
        parts: what goes into the image; the rest is documentation and other programs.
    """

    program: str
    variable: str
    repository: str
    commit: str
    release: str
    content: str
    parts: tuple[str, ...]
    folder: str

    @property
    def name(self) -> str:
        """What the log, `fab status` and the report call it; the run's id depends on it."""
        return f"{self.program} {self.release}"

    def unknown(self, digest: str) -> str:
        """Return the name of other files than those of the commit."""
        return f"{self.program} of unknown commit, files {digest}"

    def among(self, names: Iterable[str]) -> str | None:
        """Return the name of this source among those that an image holds, or None."""
        known = re.compile(
            rf"{re.escape(self.program)} (?:{re.escape(self.release)}|of unknown commit, files [0-9a-f]{{12}})"
        )
        return next(filter(known.fullmatch, names), None)


@dataclass(frozen=True)
class AgentModule:
    """A module of the agent's readers or checkpoints, with its options."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


NO_CHECKPOINTS = AgentModule("none")
"""Of a program that writes none: a run that ends early starts over."""


@dataclass(frozen=True)
class DataPlan:
    """The data of a job.

    Attributes:
        id: what names the data: the files that were brought, else what a recipe makes.
        folder: where they lie on every host, below the mount point.
        pairs: files of which each line has to have its partner.
        vocabulary: a file and the number of its lines; None for a program that makes its own of the texts.
        needed: those without which a trained model cannot be used.
        recipe: how agent/staging.py makes them, where the stack file brings none.
        largest_bytes: of a tar with finished files.
        words: a file and how many different words it has to hold, the end of a line one of them.
    """

    id: str
    folder: str
    files: tuple[str, ...]
    optional: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    vocabulary: tuple[str, int] | None
    needed: tuple[str, ...]
    recipe: Mapping[str, Any]
    largest_bytes: int
    words: tuple[str, int] | None = None


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
class Queue:
    """What is asked of a site's queue.

    Attributes:
        modules: environment modules that are loaded on the login host and in the job.
    """

    name: str
    nodes: int
    processors: int
    walltime_s: int
    modules: tuple[str, ...] = ()


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
        for number, address in enumerate(self.addresses):
            if address == grant.placeholder(number):  # The queue has not granted that node yet.
                continue
            if not ipaddress.IPv4Address(address).is_private:
                raise ValueError(f"{address} is no private address; ranks talk over the private network only")

    @property
    def ranks(self) -> tuple[str, ...]:
        """The address of each rank where every slot has one."""
        return tuple(address for address in self.addresses for _ in range(self.slots))

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
        python: the command of the interpreter that runs the program.
        word: drawn when the run began; the same configuration trained again has another one.
    """

    id: str
    job: Any
    world: World
    path: str
    folder: str
    mount_point: str
    wrapper: tuple[str, ...] = ()
    secrets: str = ""
    python: str = "python"
    word: str = ""


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
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    order: int = 0
    ends_run: bool = True
    name: str = ""


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


def matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"{value[:80]!r} is not {what}")
        return value

    return AfterValidator(check)


KEPT = re.compile(r"(?!/|-)(?!(.*/)?\.\.(/|$))[A-Za-z0-9_.,*?\[\]!=+@ /-]+")
Kept = Annotated[
    StrictStr, Field(max_length=200), matching(KEPT, "a pattern of files below the run; for example vocab*.json")
]
"""A pattern of files, below the log folder and the program's folder, that are fetched beside the checkpoints."""


class Section(BaseModel):
    """What every kind's ``job`` section holds."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    kind: StrictStr
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    preflight: StrictStr = "run"
    stall_s: Annotated[StrictInt, Field(ge=10, le=86400)] = 900
    keep: tuple[Kept, ...] = ()


@dataclass(frozen=True)
class Score:
    """How well a text was translated: a name for programs, and words for people with how it was computed."""

    name: str
    value: float
    text: str
    signature: str
