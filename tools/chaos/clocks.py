"""What happens to a computer's clocks between two commands, as the journal shows it: set, or begun anew with the computer."""

import enum
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

STEP = timedelta(minutes=15)
"""More than anything is waited for."""


class Clocks(enum.StrEnum):
    """What a person or the computer did."""

    LEFT_ALONE = "left alone"
    SET_FORWARD = "set forward"
    SET_BACK = "set back"
    STARTED_ANEW = "started anew"


def disturb(journals: Path, chance: Random) -> Clocks:
    """Write the journals' dates as they would stand there had the clocks been others, and return what was done."""
    done = chance.choice(list(Clocks))
    for path in journals.glob("*.jsonl"):
        lines = [_changed(line, CHANGES[done]) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{line}\n" for line in lines))
    return done


def _changed(line: str, change: Callable[[dict[str, Any]], None]) -> str:
    try:
        event = json.loads(line)
    except ValueError:  # A kill tore it.
        return line
    change(event)
    return json.dumps(event)


def _shift(event: dict[str, Any], by: timedelta) -> None:
    if "at" in event:
        event["at"] = (datetime.fromisoformat(event["at"]) + by).isoformat()


def _start_anew(event: dict[str, Any]) -> None:
    if "boot" in event:
        event |= {"boot": "the one before", "seconds": 0.0}


CHANGES: dict[Clocks, Callable[[dict[str, Any]], None]] = {
    Clocks.LEFT_ALONE: lambda event: None,
    Clocks.SET_FORWARD: lambda event: _shift(event, -STEP),  # What was written before looks older.
    Clocks.SET_BACK: lambda event: _shift(event, STEP),
    Clocks.STARTED_ANEW: _start_anew,
}
