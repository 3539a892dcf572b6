"""The registry of job kinds, by the name that ``job.kind`` gives. See `microcluster.jobs.job_section`."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from microcluster.jobs.job_section import Section

KINDS = ("openseq2seq", "horovod", "torchrun", "command", "texar", "mxnet")
"""Each is the name of a module, which holds the kind's section as Job."""


class UnknownKind(BaseModel):
    """The ``job`` section of a kind that does not exist: nothing else in it can be judged."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: Literal[KINDS]


def kind_of(name: str) -> type[Section]:
    """Return the section of the kind of that name; the names are those of KINDS."""
    return import_module(f"microcluster.jobs.{name}").Job


def kind_named(job: Any) -> type[Section] | None:
    """Return the kind that a ``job`` section names, or None where it names none that exists."""
    named = job.get("kind") if isinstance(job, Mapping) else None
    return kind_of(named) if isinstance(named, str) and named in KINDS else None


def section_of(job: Any) -> type[BaseModel]:
    """Return what the ``job`` section of a stack file has to be, by the kind that it names."""
    return kind_named(job) or UnknownKind
