"""The owner mark: how everything that a stack rents is told from everything else in the account."""

import re
from dataclasses import dataclass
from typing import Any

ZONE = "microcluster"
NOBODYS = "0" * 8
"""The mark of what is only priced."""
ANY_STACK = "unknown"
"""The stack of what bears a mark alone."""
_OWNER = r"(?P<stack>[A-Za-z0-9_.-]+)-(?P<mark>[0-9a-f]{8})"


@dataclass(frozen=True)
class Owner:
    """The stack and the mark that something carries."""

    stack: str
    mark: str

    def __str__(self) -> str:
        """Name both as they stand on what they own."""
        return f"{self.stack}-{self.mark}"

    @property
    def domain(self) -> str:
        """The domain of the stack's machines."""
        return f"{self}.{ZONE}"

    @property
    def notes(self) -> str:
        """The beginning of the notes of everything that is the stack's, and the label of its key."""
        return f"{ZONE} {self}"

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the stack's guests, for people who look through the account."""
        return (ZONE, f"mc-mark-{self.mark}", f"mc-stack-{self.stack}")

    def has(self, other: "Owner") -> bool:
        """Tell whether what bears the other is this stack's; what has room for a mark alone is of any stack with it."""
        return self.mark == other.mark and other.stack in (self.stack, ANY_STACK)


def owner_in_domain(domain: Any) -> Owner | None:
    """Read whose guest it is from its domain; None for everything that no stack of microcluster has ordered.

    The stack counts as well as the mark: a copied folder of keys gives two stacks one mark.
    """
    return _owner(re.fullmatch(rf"{_OWNER}\.{ZONE}", str(domain or "")))


def owner_in_notes(text: Any) -> Owner | None:
    """Read whose it is from the beginning of notes or of a description."""
    return _owner(re.match(rf"{ZONE} {_OWNER}(?![0-9A-Za-z-])", str(text or "")))


def _owner(found: re.Match[str] | None) -> Owner | None:
    return Owner(found["stack"], found["mark"]) if found else None
