"""Write a picture of what a command shows in a terminal: its lines on standard input, the picture's file as the argument.

    COLUMNS=120 script -qec 'fab receipt' /dev/null | python -m docs.tools.terminal_picture docs/receipt.svg
    COLUMNS=120 script -qec 'timeout -s INT 25 fab watch' /dev/null | python -m docs.tools.terminal_picture docs/panel.svg last

With ``last`` the picture is what a display that is drawn again and again has shown last.
"""

import os
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

REDRAW = re.compile(r"(?:\r?\x1b\[2K|\x1b\[1A|\x1b\[\?25[lh])+")
"""Escape codes with which rich erases the lines of a live display before it draws them again."""
FRAME = """<svg viewBox="-10 -10 {width} {height}" xmlns="http://www.w3.org/2000/svg"><style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
 line-height: {line_height}px; white-space: pre }} {styles}</style><defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect x="-10" y="-10" width="{width}" height="{height}" rx="8" fill="#292929"/><g>
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""
"""Rich's own frame without its title bar and without a font from the network."""


def shown(output: str, *, last: bool) -> str:
    """Return what stands on a terminal after this output, with colors."""
    frames = [frame for frame in REDRAW.split(output) if frame.strip()]
    return (frames[-1] if last else "".join(frames)).replace("\r", "")


def picture(text: str) -> str:
    """Return the text of a terminal as SVG."""
    lines = text.strip("\n").split("\n")
    width = max(len(Text.from_ansi(line)) for line in lines) + 2
    console = Console(record=True, width=width, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True, highlight=False)
    return console.export_svg(code_format=FRAME, title="")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(shown(sys.stdin.read(), last="last" in sys.argv[2:])))
