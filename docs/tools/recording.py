"""Record a command from start to end as a moving picture: its file, then the command; alone it records ``make up DOWN=1``.

    python -m docs.tools.recording                                   # docs/whole-life.svg, about ten minutes
    python -m docs.tools.recording docs/status.svg fab status

What the terminal showed is kept beside it, as an asciicast (``.cast``) that `asciinema play` shows in full. The exit code is the command's.
"""

import json
import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from docs.tools.terminal_picture import picture

ROOT = Path(__file__).parents[2]
WHOLE_LIFE = ("docs/whole-life.svg", "make", "up", "DOWN=1")
COLUMNS, ROWS = 120, 24
FRAMES = 12
"""Most frames of a picture; each is a screen, chosen so that they lie evenly between the first and the last change."""
FRAME_S, LAST_S = 2.5, 6.0
CONTROL = re.compile(r"(\r|\n|\x1b\[\d*[A-HJKf]|\x1b\[\?\d+[hl]|\x1b\][^\x07]*\x07)")
UP = re.compile(r"\x1b\[(\d*)A")

Event = tuple[float, str]
"""Seconds since the start, and what was printed then."""


def record(words: Sequence[str]) -> tuple[int, list[Event]]:
    """Run a command on a terminal of its own; return its exit code and what it printed when, without paths of this computer."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    started = time.monotonic()
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=os.environ | size
    ) as process:
        os.close(theirs)
        events = []
        while output := _read(ours):
            sys.stdout.buffer.write(output)
            sys.stdout.flush()
            text = output.decode(errors="replace").replace(str(ROOT), ".").replace(str(Path.home()), "~")
            events.append((time.monotonic() - started, text))
    os.close(ours)
    return process.returncode, events


def screens(events: Iterable[Event]) -> list[str]:
    """Return the screen after each event: its last lines, with colors; one that looks like the one before is left out."""
    lines, row, at_start, found = [""], 0, True, [""]
    for _, text in events:
        for part in CONTROL.split(text):
            if part == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif part == "\r":
                at_start = True
            elif up := UP.fullmatch(part):
                row = max(0, row - int(up[1] or 1))
            elif part.endswith("K") and CONTROL.fullmatch(part):
                lines[row] = ""
            elif part and not CONTROL.fullmatch(part):
                lines[row] = part if at_start else lines[row] + part
                at_start = False
        shown = "\n".join(lines[-ROWS:]).strip("\n")
        if shown != found[-1]:
            found.append(shown)
    return found[1:]


def chosen(found: Sequence[str]) -> list[str]:
    """Return at most so many screens as a picture has frames, the first and the last among them."""
    last = len(found) - 1
    places = sorted({round(number * last / (FRAMES - 1)) for number in range(FRAMES)}) if last > 0 else range(last + 1)
    return [found[place] for place in places]


def moving(found: Sequence[str]) -> str:
    """Return screens as one SVG that shows one after the other, for ever, the last one longest."""
    whole_s = FRAME_S * (len(found) - 1) + LAST_S
    frames = []
    for number, text in enumerate(found):
        begin, end = (100 * FRAME_S * place / whole_s for place in (number, number + 1))
        times = {0.0: "hidden", begin: "visible"} | ({end: "hidden"} if number < len(found) - 1 else {})
        rules = "".join(f"{at:.3f}%{{visibility:{value}}}" for at, value in times.items())
        style = f"@keyframes f{number}{{{rules}}}.f{number}{{animation:f{number} {whole_s:g}s step-end infinite}}"
        lines = [*text.split("\n"), *[""] * ROWS][:ROWS]
        shown = picture("\n".join([*lines, " " * COLUMNS]))
        frames.append(f'<style>{style}</style><g class="f{number}">{shown}</g>')
    view = re.search(r'viewBox="[^"]+"', frames[0])[0]
    return f'<svg {view} xmlns="http://www.w3.org/2000/svg">{"".join(frames)}</svg>\n'


def cast(events: Iterable[Event]) -> str:
    """Return what was printed when as an asciicast of version 2."""
    head = {"version": 2, "width": COLUMNS, "height": ROWS}
    return "".join(f"{json.dumps(line)}\n" for line in (head, *([at, "o", text] for at, text in events)))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # The other end was closed: the command has ended.
        return b""


def main(target: str, *words: str) -> int:
    """Record a command into a picture, and return its exit code."""
    code, events = record(words)
    file = Path(target)
    file.with_suffix(".cast").write_text(cast(events))
    file.write_text(moving(chosen(screens(events))))
    return code


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or WHOLE_LIFE)))
