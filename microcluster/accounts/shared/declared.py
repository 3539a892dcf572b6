"""A resource as Pulumi's program declares it; apart from its inputs, as Pulumi takes a tenth of a second that `fab status` has no use for."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pulumi
from pydantic.alias_generators import to_camel, to_snake

from microcluster.accounts.shared.spec import Spec


class Declared(pulumi.CustomResource):
    """A resource whose wire names are camelCase and whose Python names are snake_case."""

    TOKEN: ClassVar[str]
    SPEC: ClassVar[type[Spec]]
    account_id: pulumi.Output[str]
    """Account in which it is rented: the key of another one is refused."""

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
        """Name the outputs as on the wire."""
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
