"""Text for people: text from outside (account, machine, log, file) made safe; counts and durations.

Only the standard library: setup runs before any package is installed.
"""

import errno
import os
import re
import sys
from typing import Any, TextIO

SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI: colors, cursor, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\r\n]*+(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and their like
    r"|\x1b[ -/]*+[0-~]"
)
"""Terminal control sequences (ECMA-48), removed whole. None runs past the next one's beginning, so that the time is linear."""
BREAKS = re.compile(r"[\x0b\x0c\x85\u2028\u2029]")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 without tab and line ends, DEL, C1, and direction marks."""
UNITS = ((172800, 86400, "days", 3600, "h"), (3600, 3600, "h", 60, "min"), (60, 60, "min", 1, "s"))
"""Lower limit in seconds; seconds and name of the unit, and of the next smaller one."""
BY_TIMER = "MICROCLUSTER_GUARD"
"""The variable with which a timer says that it is one: nobody reads at once what its command prints."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
SURROGATES = re.compile(r"[\ud800-\udfff]")
"""Surrogates: code points that cannot be encoded."""


def lines(text: str) -> str:
    """Return ``text`` without control characters; line ends and tabs stay."""
    text = SEQUENCE.sub("", text.replace("\r\n", "\n"))
    text = CONTROLS.sub("", BREAKS.sub(" ", text.replace("\r", "\n")))
    return SURROGATES.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return ``text`` on one line, without control characters."""
    return re.sub(r"[\t\n]+", " ", lines(text))


def printable(text: str, longest: int = 80) -> str:
    """Return ``text`` on one line, without control characters, cut to ``longest``."""
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return clean if len(clean) <= longest else f"{clean[:longest]}..."


def shown(value: Any) -> str:
    """Return a value for a message."""
    return printable(repr(value))


def say(text: str, out: TextIO | None = None, end: str = "\n") -> None:
    """Print ``text`` without control characters and flush; to standard output by default.

    A full disk keeps a guard that a timer started from nothing: what it says then is lost, and so is every note.
    """
    out = out or sys.stdout
    try:
        print(lines(text), file=out, end=end, flush=True)
    except OSError as error:
        if error.errno not in NO_ROOM or not (out is sys.stderr or os.environ.get(BY_TIMER)):
            raise
        # Also for what is printed by others, and for what is still in the buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def note(text: str) -> None:
    """Print ``text`` on standard error; standard output is for results."""
    say(text, sys.stderr)


def count(number: int, noun: str, plural: str = "") -> str:
    """Return "1 line" or "2 lines"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Return 8 s, 3 min 5 s, 23 h 48 min or 3 days 4 h."""
    whole_seconds = round(seconds)
    for from_s, unit_s, unit, smaller_s, smaller in UNITS:
        if whole_seconds >= from_s:
            rest = whole_seconds % unit_s // smaller_s
            return f"{whole_seconds // unit_s} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole_seconds} s"
