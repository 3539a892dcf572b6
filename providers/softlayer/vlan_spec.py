"""What is ordered when a VLAN is ordered."""

from __future__ import annotations

from typing import Annotated, Literal

import pydantic

from providers.softlayer.spec import MARK_PATTERN, ObjectId, Spec
from providers.softlayer.vlans import MARK_LENGTH, NAME_LENGTH, marked_name


class VlanSpec(Spec):
    """One VLAN behind one router; without a router the account chooses one in the datacenter."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    name: Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    datacenter: str
    space: Literal["PRIVATE", "PUBLIC"] = "PRIVATE"
    router_id: ObjectId | None = None
    hourly: bool = True

    @pydantic.field_validator("name")
    @classmethod
    def _short(cls, name: str) -> str:
        left = NAME_LENGTH - MARK_LENGTH
        if len(name) > left:
            raise ValueError(
                f"'{name}' is too long: a VLAN's name has {NAME_LENGTH} characters, {left} of them beside the owner mark"
            )
        return name

    @property
    def account_name(self) -> str:
        """Its name in the account, which begins with the owner mark."""
        return marked_name(self.mark, self.name)
