"""The owner mark: how everything that a stack rents is told from everything else in the account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ZONE = "microcluster"


def owner(stack: str, mark: str) -> str:
    """Name the stack and its mark, as they stand in domains, notes and names."""
    return f"{stack}-{mark}"


def notes(owner_name: str) -> str:
    """Begin the notes of everything that ``owner_name`` has."""
    return f"{ZONE} {owner_name}"


def owner_domain(stack: str, mark: str) -> str:
    """Name the domain of a stack's guests."""
    return f"{owner(stack, mark)}.{ZONE}"


def owner_label(stack: str, mark: str) -> str:
    """Name the key of a stack in the account's list of keys."""
    return notes(owner(stack, mark))


def owner_tags(stack: str, mark: str) -> tuple[str, ...]:
    """Return the tags of a stack's guests, for people who look through the account."""
    return (ZONE, f"mc-mark-{mark}", f"mc-stack-{stack}")


def owner_of(domain: str) -> str:
    """Read ``v100-1f3a9c42`` from ``v100-1f3a9c42.microcluster``."""
    return domain.removesuffix(f".{ZONE}")


def domain_is(domain: Any, mark: str) -> bool:
    """Tell whether a domain carries exactly this mark."""
    return re.fullmatch(rf"[A-Za-z0-9-]+-{re.escape(mark)}\.{ZONE}", str(domain or "")) is not None


def notes_are(text: Any, mark: str) -> bool:
    """Tell whether notes or a description begin with exactly this mark."""
    return re.match(rf"{ZONE} [A-Za-z0-9_.-]*-{re.escape(mark)}(?![0-9A-Za-z-])", str(text or "")) is not None


def guest_is(guest: Mapping[str, Any], mark: str, hostname: str | None = None) -> bool:
    """Tell whether a guest is this stack's, and if asked this node: filters are checked again here, always.

    A mis-rooted filter is ignored by the service and returns every guest of the account.
    """
    return domain_is(guest.get("domain"), mark) and hostname in (None, guest.get("hostname"))
