"""A resource's inputs, and what is wrong with them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Self

import pydantic
from pydantic.alias_generators import to_camel

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Pulumi's stand-in for a value that a preview cannot know yet."""
Mark = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9a-f]{8}$")]

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """One problem of one input."""

    key: str
    reason: str


class Spec(pydantic.BaseModel):
    """The base of every resource's inputs: camelCase on the wire, unknown keys refused."""

    model_config = pydantic.ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True)

    @classmethod
    def declare(cls, **values: Any) -> Self:
        """Name inputs of which some are known only later; the provider checks them."""
        fields = cls.model_fields
        strange, missing = (
            set(values) - set(fields),
            {name for name in fields if fields[name].is_required()} - set(values),
        )
        if strange or missing:
            raise TypeError(f"{cls.__name__} lacks {sorted(missing)} and has no {sorted(strange)}")
        return cls.model_construct(**values)


class Limited(Spec):
    """Limits of the rental among a ledger's inputs, written into the account beside the first order.

    Attributes:
        lease_minutes, budget_cents: the limits of the stack file; None without one.
        least_hours: the started hours that a budget has to pay: preparation, data, one hour of training, and the guard's reserve.
    """

    lease_minutes: int | None = None
    budget_cents: int | None = None
    least_hours: int = 1


def problems(spec: type[Spec], inputs: Values) -> list[Problem]:
    """Return problems of ``inputs``; a value that a preview cannot know yet has none."""
    try:
        spec.model_validate(inputs)
    except pydantic.ValidationError as error:
        return [_problem(found) for found in error.errors() if UNKNOWN not in str(found["input"])]
    return []


def other_mark(inputs: Values, old_inputs: Values) -> list[Problem]:
    """Refuse another mark than the recorded one: it is never a diff."""
    recorded = old_inputs.get("mark")
    if not recorded or recorded == inputs.get("mark"):
        return []
    sentence = (
        f"the state belongs to owner mark {recorded}, the stack's key folder gives {inputs.get('mark')}. "
        "Put the stack's own key folder back: what was rented is found by the first mark only."
    )
    return [Problem("mark", sentence)]


def other_key(inputs: Values, old_inputs: Values) -> list[Problem]:
    """Refuse another ssh key than the one that it was ordered with: a copied key folder from before a rotation has it."""
    recorded = str(old_inputs.get("publicKey") or "").split()[:2]
    if not recorded or recorded == str(inputs.get("publicKey")).split()[:2]:
        return []
    sentence = (
        "what is rented was ordered with another ssh key of the stack, and would be replaced. Put the key folder of the computer that "
        "ordered it in place. If nothing is rented any more, run 'pulumi refresh' first."
    )
    return [Problem("publicKey", sentence)]


def _problem(found: Any) -> Problem:
    path = ".".join(str(step) for step in found["loc"])
    reason = {"extra_forbidden": "is no property of this resource", "missing": "is missing"}.get(found["type"])
    return Problem(path, reason or found["msg"].removeprefix("Value error, "))
