"""Objects as the API shows them: local properties always, relations only if the mask names them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MISSING = object()


@dataclass(frozen=True)
class View:
    """One SoftLayer object as the API shows it; a relation that answers None is not there."""

    local: dict[str, Any]
    relations: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Whether the object has such a property at all."""
        return name in self.local or name in self.relations or self._counted(name) is not None

    def read(self, name: str) -> Any:
        """The value of one property; MISSING when there is none."""
        if name in self.local:
            return self.local[name]
        if name in self.relations:
            value = self.relations[name]()
            return MISSING if value is None else value
        counted = self._counted(name)
        return MISSING if counted is None else len(self.relations[counted]() or [])

    def _counted(self, name: str) -> str | None:
        """SoftLayer has a ``thingCount`` for every list ``things``; the plural of hardware is hardware."""
        if not name.endswith("Count"):
            return None
        stem = name.removesuffix("Count")
        return next((plural for plural in (f"{stem}s", stem) if plural in self.relations), None)


@dataclass(frozen=True)
class Listing:
    """A list answer; it is filtered under ``root``, ordered, paged and masked before it is sent."""

    views: list[View]
    root: str | None = None
