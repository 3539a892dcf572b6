"""Objects as the API shows them: local properties always, relations only if the mask names them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class View:
    """One SoftLayer object as the API shows it; a relation that answers None is not there."""

    local: dict[str, Any]
    relations: dict[str, Callable[[], Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """A list answer; it is filtered under ``root``, ordered, paged and masked before it is sent."""

    views: list[View]
    root: str | None = None
