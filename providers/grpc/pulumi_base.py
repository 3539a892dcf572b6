"""What the Pulumi classes of the provider's resources have in common: how their properties are named on the wire."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pulumi

Strings = Sequence[pulumi.Input[str]]


class VendorResource(pulumi.CustomResource):
    """A resource whose wire names are camelCase and whose Python names are snake_case."""

    def translate_output_property(self, prop: str) -> str:
        """Turn the wire's ``keyId`` into ``key_id``."""
        return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in prop)

    def translate_input_property(self, prop: str) -> str:
        """Turn ``key_id`` into the wire's ``keyId``."""
        return camel_case(prop)


def camel_case(name: str) -> str:
    """Turn ``key_id`` into ``keyId``."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def props(args: Any, outputs: Sequence[str]) -> dict[str, Any]:
    """Join a resource's inputs, those of its parts included, with the names of its outputs."""
    # Pulumi makes an attribute for each key of this dict and for nothing else, outputs included.
    named = dict.fromkeys(outputs)
    for field in fields(args):
        value = getattr(args, field.name)
        named |= props(value, ()) if is_dataclass(value) else {field.name: value}
    return named
