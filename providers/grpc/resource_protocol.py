"""What the servicer expects of a vendor: settings, a session, and one module with these names for each resource."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from providers.grpc.properties import Problem
from providers.rental.operation import Operation, Session

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Created:
    """An object with its id and all outputs."""

    resource_id: str
    outputs: dict[str, Any]


@dataclass(frozen=True)
class Live:
    """An object as the account shows it; its inputs differ from ours when somebody changed it."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


class Resource(Protocol):
    """One kind of object. ``check`` and ``known_outputs`` are pure and never call the account."""

    REPLACE_ON: frozenset[str]
    TIMEOUT_S: float

    def check(self, inputs: Values, old_inputs: Values) -> list[Problem]:
        """Say what is wrong with the inputs."""

    def known_outputs(self, inputs: Values, old: Values) -> dict[str, Any]:
        """Tell a preview the outputs that are known already; ``old`` is empty for a new object."""

    def create(self, op: Operation, inputs: Values) -> Created:
        """Adopt or order it, and return it ready."""

    def read(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> Live | None:
        """Read it; None when it is gone. ``inputs`` and ``old`` are empty in an import."""

    def update(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> dict[str, Any]:
        """Finish it, or change it in place, and return all outputs; ``old`` are the recorded outputs."""

    def delete(self, op: Operation, resource_id: str, inputs: Values, old: Values) -> None:
        """Cancel it and return when that is proven."""


@dataclass(frozen=True)
class Vendor:
    """One vendor's provider."""

    version: str
    resources: Mapping[str, Resource]
    """By type token."""
    problems: Callable[[Values], list[Problem]]
    """Says what is wrong with the provider's settings."""
    session: Callable[[Values, threading.Event], Session]
    """Begins a session with checked settings; it calls nobody yet."""
