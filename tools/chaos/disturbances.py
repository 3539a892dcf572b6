"""What happens to a computer between two commands: a damaged state file, a lost journal, other clocks."""

import enum
import json
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

CLOCK_STEP = timedelta(minutes=15)
"""More than anything is waited for."""


class Damage(enum.StrEnum):
    """What can become of a state file."""

    TRUNCATED = "truncated"
    EMPTIED = "emptied"
    STALE = "stale"
    GONE = "gone"


class Clocks(enum.StrEnum):
    """What a person or the computer did to the clocks, as the journal shows it."""

    LEFT_ALONE = "left alone"
    SET_FORWARD = "set forward"
    SET_BACK = "set back"
    STARTED_ANEW = "started anew"


def inflict(damage: Damage, path: Path, backup: Path, chance: Random) -> None:
    """Damage the state file at ``path``; where there is no older one beside it, a stale state is an absent one."""
    content = path.read_bytes() if path.exists() else b""
    if damage is Damage.TRUNCATED and content:
        path.write_bytes(content[: chance.randrange(1, len(content))])
    elif damage is Damage.EMPTIED:
        path.write_bytes(b"")
    elif damage is Damage.STALE and backup.exists():
        path.write_bytes(backup.read_bytes())
    else:
        path.unlink(missing_ok=True)


def disturb_clocks(journals: Path, chance: Random) -> None:
    """Write the journals' dates as they would stand there had the clocks been others."""
    clocks = chance.choice(list(Clocks))
    for path in journals.glob("*.jsonl"):
        lines = [_changed(line, clocks) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{line}\n" for line in lines))


def _changed(line: str, clocks: Clocks) -> str:
    try:
        event: dict[str, Any] = json.loads(line)
    except ValueError:  # A kill tore it.
        return line
    if clocks is Clocks.STARTED_ANEW and "boot" in event:
        event |= {"boot": "the one before", "seconds": 0.0}
    # What was written before a clock was set forward looks older.
    shift = {Clocks.SET_FORWARD: -CLOCK_STEP, Clocks.SET_BACK: CLOCK_STEP}.get(clocks)
    if shift and "at" in event:
        event["at"] = (datetime.fromisoformat(event["at"]) + shift).isoformat()
    return json.dumps(event)
