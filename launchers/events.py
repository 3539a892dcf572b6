"""The events of a run as its machines wrote them: what is no event, or lacks a number that it must have, is left out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Event = Mapping[str, Any]

NUMBERS = {
    "train": ("step",),
    "time": ("step", "seconds_per_step"),
    "bleu": ("score",),
    "checkpoint": ("step",),
    "copied": ("step",),
    "restored": ("step",),
    "parameters": ("value",),
    "average_seconds_per_step": ("value",),
    "average_objects_per_second": ("value",),
    "prediction": ("seconds",),
}
"""What an event must have as a number to be of use."""
TEXTS = {"alarm": ("cause", "text"), "cleared": ("cause",), "sample": ("node",)}
LOSSES = ("train", "validation")
TIME = "t"


def sound(written: Iterable[Any]) -> list[Event]:
    """Return the events among what was read from a machine; a damaged disk or another program may have written there."""
    return [event for event in written if isinstance(event, dict) and _is_sound(event)]


def _is_sound(event: Event) -> bool:
    kind = event.get("event")
    if not isinstance(kind, str) or not _is_number(event.get(TIME, 0)):
        return False
    if kind in LOSSES and not (_is_number(event.get("loss")) or isinstance(event.get("loss"), str)):
        return False
    if kind == "sample" and not (isinstance(event.get("gpus"), list) and all(map(_is_number, _samples(event)))):
        return False
    return all(isinstance(event.get(key), str) for key in TEXTS.get(kind, ())) and all(
        _is_number(event.get(key)) for key in NUMBERS.get(kind, ())
    )


def _samples(event: Event) -> list[Any]:
    return [*event["gpus"], *(event[key] for key in ("rx_bytes", "tx_bytes") if key in event)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
