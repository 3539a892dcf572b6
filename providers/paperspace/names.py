"""The owner mark in names: the only text that everything in a Paperspace account has."""

import re
from dataclasses import dataclass
from typing import Any

from core import home as marks
from core.home import ZONE, Owner

KEPT = "kept-"
"""Begins the label of what stays when its stack goes: a name is all of it that can be changed."""
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
"""Without a dot, which ends it."""


@dataclass(frozen=True)
class Named:
    """A name that was read: ``kept-data.pair-1f3a9c42.microcluster``."""

    label: str
    """What tells it from the stack's others of its kind, for example ``data``."""
    owner: Owner
    is_kept: bool = False


def full(label: str, owner: Owner, *, keep: bool = False) -> str:
    """Write the name of something in the account."""
    return f"{KEPT if keep else ''}{label}.{owner}.{ZONE}"


def read(name: Any) -> Named | None:
    """Read a name; None for everything that no stack of microcluster has named."""
    label, _, domain = str(name or "").partition(".")
    owner = marks.owner_in_domain(domain)
    if owner is None or not re.fullmatch(LABEL, label):
        return None
    return Named(label.removeprefix(KEPT), owner, label.startswith(KEPT))


def owner_of(name: Any) -> Owner | None:
    """Read from a name whose it is."""
    found = read(name)
    return found.owner if found else None
