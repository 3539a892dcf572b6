"""The clocks: one that nobody sets, by which orders are decided, and the wall clock, for people to read."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Counts on while the computer sleeps, and is never set; comparable within one boot, also between processes."""


@dataclass(frozen=True)
class Instant:
    """A moment of one boot of this computer."""

    boot: str
    seconds: float


def now() -> Instant:
    """Return the moment that it is."""
    return Instant(_boot(), time.clock_gettime(STEADY))


def since(moment: Instant | None) -> float | None:
    """Return the seconds since a moment; None if it is of another boot, of which nobody knows when it was."""
    here = now()
    if moment is None or moment.boot != here.boot or moment.seconds > here.seconds:
        return None
    return here.seconds - moment.seconds


def wall() -> datetime:
    """Return the date and time to show; anybody may set it, so nothing is decided by it."""
    return datetime.now(UTC)


def read(event: Mapping[str, Any]) -> Instant | None:
    """Read a moment that was written down; None if there is none."""
    boot, seconds = event.get("boot"), event.get("seconds")
    return Instant(boot, float(seconds)) if isinstance(boot, str) and isinstance(seconds, int | float) else None


@cache
def _boot() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return uuid.uuid4().hex  # Without it no two processes can compare their moments.
