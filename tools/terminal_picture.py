"""Write a picture of what a command shows in a terminal: ``python -m tools.terminal_picture panel.svg fab watch``."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 120, 30
LOOK_S = 25.0
"""A command that goes on, such as `fab watch`, is interrupted after this time; what it shows then is the picture."""
REDRAW = re.compile(r"(?:\r?\x1b\[2K|\x1b\[1A|\x1b\[\?25[lh])+")
"""How rich takes back the lines of a live display."""
FRAME = """<svg viewBox="-10 -10 {width} {height}" xmlns="http://www.w3.org/2000/svg"><style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
 line-height: {line_height}px; white-space: pre }} {styles}</style><defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect x="-10" y="-10" width="{width}" height="{height}" rx="8" fill="#292929"/><g>
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""
"""Rich's own frame without its title bar and without a font from the network."""


def shown(argv: list[str]) -> str:
    """Run a command in a terminal of its own and return what stands on it, with colors, at its end or after ``LOOK_S``."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    running = subprocess.Popen(
        argv, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    )
    os.close(theirs)
    output, end = b"", time.monotonic() + LOOK_S
    while time.monotonic() < end:
        if not select.select([ours], [], [], 0.2)[0]:
            continue
        try:
            output += os.read(ours, 65536)
        except OSError:  # The other side is closed: the command has ended.
            break
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGINT)
    running.wait(timeout=60)
    os.close(ours)
    frames = [frame for frame in REDRAW.split(output.decode(errors="replace")) if frame.strip()]
    return (frames[-1] if running.returncode < 0 or running.returncode == 130 else "".join(frames)).replace("\r", "")


def picture(text: str) -> str:
    """Return the text of a terminal as SVG."""
    lines = text.strip("\n").split("\n")
    width = max(len(Text.from_ansi(line)) for line in lines) + 2
    console = Console(record=True, width=width, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True, highlight=False)
    return console.export_svg(code_format=FRAME, title="")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(shown(sys.argv[2:])))
