"""The sections of a stack file with their keys and allowed values: ``container`` and ``guard`` here; the account and the kind add theirs."""

import re
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, create_model, model_validator
from pydantic.alias_generators import to_camel

from microcluster.accounts.registry import ACCOUNTS, DEFAULT, account_of, name_in
from microcluster.core.home import problem_of_path
from microcluster.core.plain_text import shown
from microcluster.jobs.cluster_facts import SSH_PORT
from microcluster.jobs.image import EXAMPLE
from microcluster.jobs.kinds import section_of

COMPONENT = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?=[^/]*\.)[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{{1,5}})?(?:/{COMPONENT})+"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
LONGEST_IMAGE = 255


def _key_file(value: str) -> str:
    problem = problem_of_path(value)
    if problem is None and ".ssh" in PurePath(value).parts:
        problem = "names a file of ssh, whose keys go to no registry; name the file of the registry's own key"
    if problem:
        raise ValueError(problem)
    return value


def _image_reference(value: str) -> str:
    """Accept a container image reference with its registry."""
    if len(value) > LONGEST_IMAGE or not IMAGE.fullmatch(value):
        raise ValueError(f"{shown(value)} is not a full image reference; for example {EXAMPLE}")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class AccountName(BaseModel):
    """Account that a ``cluster`` section names; without one that exists nothing else in it can be judged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    account: Literal[tuple(ACCOUNTS)] = DEFAULT


class ContainerSection(_Section):
    """The container in which the job runs on every node."""

    image: Annotated[
        StrictStr,
        AfterValidator(_image_reference),
        Field(description="image reference with its registry", examples=[EXAMPLE]),
    ]
    name: Annotated[
        StrictStr,
        Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$", description="a lower-case word of at most 31 characters"),
    ] = "training"
    ssh_port: Annotated[StrictInt, Field(ge=1024, le=65535)] = SSH_PORT
    registry_key_file: (
        Annotated[
            StrictStr,
            AfterValidator(_key_file),
            Field(
                description="path that begins with `~/`, `/` or `$MICROCLUSTER_HOME/`; the key alone for NVIDIA's registry, else under `[registry]`"
            ),
        ]
        | None
    ) = None


def _amount(most: int, description: str) -> Any:
    return Annotated[float, Field(strict=True, gt=0, le=most, allow_inf_nan=False, description=description)]


class GuardSection(_Section):
    """Limits of a rental, whatever the job does; each key works alone."""

    budget: _amount(1_000_000, "dollars that the rental may cost; started hours count whole") | None = None
    lease: _amount(8760, "hours since the first machine; for a queue, node hours") | None = None
    idle: _amount(10_080, "minutes in which nothing happens on any machine, from the first step on") | None = None
    when_done: Annotated[
        Literal["cancel", "keep"],
        Field(description="a finished job: `cancel` fetches it and cancels; `keep` keeps the machines"),
    ] = "cancel"
    keep_failed: Annotated[
        float,
        Field(strict=True, ge=0, le=10_080, description="minutes that the machines of a failed job stay, 0 to 10,080"),
    ] = 30
    blind: _amount(10_080, "minutes in which account or machines do not answer, until that is an alarm") = 30

    @property
    def in_account(self) -> dict[str, int]:
        """The limits that stand in the account beside the rental, as a ledger takes them."""
        limits = {"lease_minutes": (self.lease, 60), "budget_cents": (self.budget, 100)}
        return {name: round(value * unit) for name, (value, unit) in limits.items() if value is not None}

    @model_validator(mode="after")
    def _says_something(self) -> "GuardSection":
        if not self.model_dump(exclude_unset=True, exclude_none=True):
            raise ValueError("has no keys and would guard nothing; for example lease: 30")
        return self


class StackFile(_Section):
    """The sections of a stack file; the account defines ``cluster``, and the job's kind ``job``.

    ``container`` is None where the account's machines run none, and ``guard`` where nobody has set one.
    """

    cluster: Any
    container: Any
    job: Any
    guard: GuardSection | None = None


def stack_file(cluster: object, job: object) -> type[StackFile]:
    """Return the model of a stack file with these sections."""
    named = name_in(cluster)
    account = account_of(named) if named else None
    return create_model(
        "StackFile",
        __base__=StackFile,
        cluster=(account.section if account else AccountName, ...),
        container=(None if account and account.runtime == "host" else ContainerSection, ...),
        job=(section_of(job), ...),
    )
