"""A resource's inputs as they are declared and ordered, and what is wrong with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import pulumi
import pydantic
from pydantic.alias_generators import to_camel, to_snake

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""What stands for a value that a preview cannot know yet."""
Mark = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9a-f]{8}$")]

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with one input."""

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


def problems(spec: type[Spec], inputs: Values) -> list[Problem]:
    """Say what is wrong with ``inputs``; what a preview cannot know yet is never judged."""
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
        f"the state belongs to owner mark {recorded}, the stack's key pair gives {inputs.get('mark')}. "
        "Put the stack's own key folder back: what was rented is found by the first mark only."
    )
    return [Problem("mark", sentence)]


def _problem(found: Any) -> Problem:
    path = ".".join(str(step) for step in found["loc"])
    reason = {"extra_forbidden": "is no property of this resource", "missing": "is missing"}.get(found["type"])
    return Problem(path, reason or found["msg"].removeprefix("Value error, "))


class Declared(pulumi.CustomResource):
    """A resource whose wire names are camelCase and whose Python names are snake_case."""

    TOKEN: ClassVar[str]
    SPEC: ClassVar[type[Spec]]
    account_id: pulumi.Output[str]
    """Of whom it is rented: the key of another account is refused."""

    def __init__(self, name: str, spec: Spec, opts: pulumi.ResourceOptions | None = None) -> None:
        """Args:
        spec: made by ``SPEC.declare``, as values of other resources are known only later.
        """
        given = {key: _plain(getattr(spec, key)) for key in self.SPEC.model_fields}
        # Pulumi makes an attribute for each key of this dict and for nothing else, outputs included.
        super().__init__(self.TOKEN, name, {**dict.fromkeys(self.outputs()), **given}, opts)

    @classmethod
    def outputs(cls) -> list[str]:
        """Name the outputs, which are not inputs as well."""
        return ["account_id", *cls.__annotations__]

    @classmethod
    def output_keys(cls) -> tuple[str, ...]:
        """Name them as on the wire."""
        return tuple(to_camel(name) for name in cls.outputs())

    def translate_output_property(self, prop: str) -> str:
        """Turn the wire's ``hostKey`` into ``host_key``."""
        return to_snake(prop)

    def translate_input_property(self, prop: str) -> str:
        """Turn ``host_key`` into the wire's ``hostKey``."""
        return to_camel(prop)


def _plain(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.model_dump(by_alias=True, exclude_defaults=True)
    return [_plain(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else value
