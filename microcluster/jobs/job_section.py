"""The contract of a job kind: a section of the stack file, which makes the run document for the machines on which it will run.

A kind is pure, and nothing outside this package asks which kind it is.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from agent.run.document import RunDocument
from microcluster.jobs.finished_data import DataPlan

GRADIENT_BYTES = 4
"""Gradients travel in 32 bits in mixed precision as well: the frameworks cast them before they are added up."""
MOST_STEPS = 10_000_000
CHECKPOINTS_KEPT, SPARE_BYTES = 12, 10**9
"""Five regular and five best checkpoints are kept, and two are written."""
Runtime = Literal["container", "host"]
"""Place of a run's processes: the training container, or the machine itself with an environment that the run installs."""
Sections = Mapping[str, Any]
"""The sections of a stack file as they are written, some of them filled in, none of them validated."""
RUN_OR_REASON = re.compile(r"run|skip: [^\s][ -~]{7,199}")
KEPT = re.compile(r"(?!/|-)(?!(.*/)?\.\.(/|$))[A-Za-z0-9_.,*?\[\]!=+@ /-]+")


def disk_bytes(checkpoint_bytes: int = 0) -> int:
    """Return the free space that a run needs on every disk; the size of its checkpoints is 0 if nobody knows it."""
    return SPARE_BYTES + CHECKPOINTS_KEPT * checkpoint_bytes


@dataclass(frozen=True)
class Origin:
    """A value that follows from others, and why."""

    value: Any
    reason: str


@dataclass(frozen=True)
class Hardware:
    """Facts of the cluster from which a kind derives defaults.

    Attributes:
        precision: in which the cluster's GPUs compute fastest.
        local_programs: what the local training image holds beside the stand-ins, as `make images` wrote it down.
        nodes: of the cluster; None where its section says it wrong.
        ranks: one for each GPU of the cluster; None where its section says too little.
    """

    precision: str | None = None
    local_programs: tuple[str, ...] = ()
    nodes: int | None = None
    ranks: int | None = None


@dataclass(frozen=True)
class Workload:
    """Work of one step for planning: the model whose measurements hold, and how much is computed and exchanged.

    Attributes:
        name: the model, as the GPU's row in the catalog names it.
        units: samples that each GPU computes in a step.
        gradient_bytes: what every rank exchanges in a step.
        data_h: hours in which the rented machines make the data: at least, usually, at most.
    """

    name: str
    precision: str
    units: int
    gradient_bytes: int
    data_h: tuple[float, float, float] = (0, 0, 0)


@dataclass(frozen=True)
class PinnedSource:
    """A program's source for the local training image: where it comes from, and which commit it is.

    Attributes:
        name: of the commit, as the log, `fab status` and the report have it; the run's id depends on it.
        variable: of the environment, which names another place, or `none`.
        folder: its name in the image's build context.
        content: the hash of the files ``parts`` at that commit, by `microcluster.setup.image_build.input_hash`.
        parts: what goes into the image; the rest is documentation and other programs.
        stand_in: the name of what trains where the image does not hold the program.
    """

    program: str
    name: str
    variable: str
    repository: str
    commit: str
    content: str
    parts: tuple[str, ...]
    folder: str
    stand_in: str

    def unknown(self, digest: str) -> str:
        """Return the name of other files than those of the commit."""
        return f"{self.program} of unknown commit, files {digest}"

    def among(self, names: Iterable[str]) -> str | None:
        """Return the name of this source among those that an image holds, or None."""
        unknown = re.compile(re.escape(self.unknown("")) + "[0-9a-f]{12}")
        return next((name for name in names if name == self.name or unknown.fullmatch(name)), None)


def matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    """Accept what a pattern takes whole."""

    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise ValueError(f"{value[:80]!r} is not {what}")
        return value

    return AfterValidator(check)


Kept = Annotated[
    StrictStr, Field(max_length=200), matching(KEPT, "a pattern of files below the run; for example vocab*.json")
]
"""A pattern of files, below the log folder and the program's folder, that are fetched beside the checkpoints."""


class Section(BaseModel, ABC):
    """The ``job`` section of a stack file: its keys, what follows from others, what contradicts them, and the run document.

    The same object travels to the steps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    runtimes: ClassVar[tuple[Runtime, ...]] = ("container",)
    """Runtimes that the kind supports; the account's machines decide which one is used."""
    local_source: ClassVar[PinnedSource | None] = None
    """Program that `make images` adds to the local training image beside the stand-in."""
    config_file: ClassVar[str]
    """Name, in the run's folder, of the configuration that every rank reads and the report shows."""
    translator: ClassVar[ModuleType | None] = None
    """Module that translates with the run's model and scores it."""
    any_world: ClassVar[bool] = False
    """Whether another number of nodes or slots goes on with the run, which then is the same one."""
    setup_lines: ClassVar[tuple[str, ...]] = ()
    """Lines of shell that run on every node before the program."""

    kind: StrictStr
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS, examples=["50000"])]
    preflight: Annotated[
        StrictStr,
        matching(RUN_OR_REASON, "'run' or 'skip: ' with a reason of 8 to 200 characters"),
        Field(description="`run`, or `skip: ` and a reason that is kept with the run"),
    ] = "run"
    stall_s: Annotated[
        StrictInt,
        Field(
            ge=10, le=86400, description="10 to 86,400 seconds in which a run shows no life, after which it is ended"
        ),
    ] = 900
    keep: Annotated[
        tuple[Kept, ...],
        Field(
            description="patterns of files below `{logdir}` and the program's folder that `fab fetch` brings beside checkpoints"
        ),
    ] = ()

    @classmethod
    def defaults(cls, sections: Sections, hardware: Hardware) -> Mapping[str, Origin]:
        """Return what follows for keys such as "job.maxSteps" that the stack file leaves out; what is invalid is left."""
        return {}

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what the section's types cannot: what contradicts the other sections, which are filled in."""
        return []

    @property
    def sent_source(self) -> str | None:
        """The folder of the operator's computer that travels with the job, or None where the image holds the program."""
        return None

    def workload(self) -> Workload | None:
        """Return what a step computes and exchanges, or None for what nobody has measured."""
        return None

    def planned_rate(self, step: int) -> float | None:
        """Return the learning rate of a step, counted from 1; None if only the program knows it."""

    def data_of(self, disk: str, brought: str | None) -> DataPlan | None:
        """Return the plan of the data below the mount point ``disk``; ``brought`` is the id of data that the user brings."""

    @abstractmethod
    def configuration(self, data_folder: str, logdir: str, files: Mapping[str, str] | str) -> str:
        """Return the text of ``config_file``; all of it but ``max_steps`` decides which run it is.

        Args:
            files: hashes of the files that travel with the job, by name, or one of all together.
        """

    @abstractmethod
    def dockerfile(self, base: str, trainer: str | None) -> str:
        """Return the Dockerfile of the container's image; ``trainer`` is what trains in the local training image, None in every other."""

    @abstractmethod
    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: a begun one, which holds all that cluster and stack decide, with all that the kind decides."""
