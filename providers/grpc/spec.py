"""A resource's inputs as a typed, frozen object, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import pydantic
from pydantic.alias_generators import to_camel

from providers.grpc.values import has_unknown

MARK_PATTERN = r"^[0-9a-f]{8}$"
ObjectId = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9]+$")]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one input."""

    key: str
    reason: str


class Spec(pydantic.BaseModel):
    """The base of every resource's inputs: camelCase on the wire, unknown keys refused."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)

    @classmethod
    def of(cls, inputs: Mapping[str, Any]) -> Self:
        """Read checked inputs."""
        return cls.model_validate(dict(inputs))


class Placed(Spec):
    """Inputs that say where guests stand on the private network: behind a router, or in one of its VLANs."""

    backend_router_id: ObjectId | None = None
    private_vlan_id: ObjectId | None = None

    @pydantic.model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.backend_router_id is not None and self.private_vlan_id is not None:
            raise ValueError("name either backendRouterId or privateVlanId, and not both")
        return self


def problems(spec: type[Spec], inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with ``inputs``; what a preview cannot know yet is never judged."""
    try:
        spec.of(inputs)
    except pydantic.ValidationError as error:
        return [_problem(found) for found in error.errors() if not has_unknown(found["input"])]
    return []


@dataclass(frozen=True)
class Difference:
    """Which inputs changed, and which of those need a new object."""

    changed: tuple[str, ...]
    replacing: tuple[str, ...]


def difference(old: Mapping[str, Any], new: Mapping[str, Any], replace_on: Collection[str]) -> Difference:
    """Compare inputs with inputs; outputs never count, because the account resolves names into ids and dates."""
    changed = tuple(sorted(key for key in {*old, *new} if old.get(key) != new.get(key)))
    return Difference(changed, tuple(key for key in changed if key in replace_on))


def _problem(found: Any) -> Problem:
    path = ".".join(str(step) for step in found["loc"])
    reason = {"extra_forbidden": "is no property of this resource", "missing": "is missing"}.get(found["type"])
    return Problem(path, reason or found["msg"].removeprefix("Value error, "))
