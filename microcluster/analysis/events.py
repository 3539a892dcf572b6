"""The events of a run as its machines wrote them; malformed ones are dropped and counted. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Event = Mapping[str, Any]
LARGEST = 10**18
"""No time, count or size is larger."""


def sound(values: Iterable[object]) -> tuple[tuple[Event, ...], int]:
    """Return the valid events among ``values``, and the number of the others."""
    values = tuple(values)
    events = tuple(value for value in values if isinstance(value, dict) and _is_sound(value))
    return events, len(values) - len(events)


def parse(text: str) -> tuple[tuple[Event, ...], int]:
    """Read the lines of an event file; a last line that is still being written does not count."""
    lines = text.split("\n")
    if lines and _value(lines[-1]) is None:
        lines.pop()
    return sound(_value(line) for line in lines)


def _value(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_sound(event: dict[str, Any]) -> bool:
    kind = event.get("event")
    if not isinstance(kind, str):
        return False
    there = all(key in event for key in NEEDED.get(kind, ()))
    return there and all(TYPES[key](value) for key, value in event.items() if key in TYPES) and _is_value(kind, event)


def _is_value(kind: str, event: Event) -> bool:
    if kind in MEASURES:
        return _is_number(event.get("value"))
    return kind not in NAMES or isinstance(event.get("value"), str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < LARGEST


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and _is_number(value)


def _is_loss(value: object) -> bool:
    """A number, or the word for one that JSON cannot hold."""
    return _is_number(value) or value in ("nan", "inf", "-inf")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are(kind: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(kind, value))


NEEDED: Mapping[str, tuple[str, ...]] = {
    "alarm": ("cause", "text", "t"),
    "checkpoint": ("step",),
    "cleared": ("cause",),
    "copied": ("step", "to", "best", "lag_s"),
    "end": ("t",),
    "metric": ("name", "step", "value"),
    "passed_over": ("text",),
    "phase": ("phase", "t"),
    "prediction": ("seconds", "source"),
    "restored": ("step",),
    "sample": ("node", "t"),
    "staging": ("text",),
    "time": ("step", "seconds_per_step"),
    "train": ("step",),
    "validation": ("loss",),
}
"""The keys that readers of each event need."""
TYPES: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("t", "seconds", "seconds_per_step", "lag_s", "score"), _is_number),
    **dict.fromkeys(("step", "rx_bytes", "tx_bytes", "free_bytes", "bytes"), _is_whole),
    **dict.fromkeys(("phase", "cause", "text", "source", "node", "name"), _is_text),
    "loss": _is_loss,
    "gpus": lambda value: value is None or _are(_is_number)(value),
    "best": _are(_is_text),
    "max_steps": lambda value: value is None or _is_whole(value),
}
"""A key means the same in every event that has it."""
MEASURES = ("metric", "average_seconds_per_step", "average_objects_per_second", "parameters")
NAMES = ("read", "loaded", "trainer")
