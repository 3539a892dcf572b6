"""A picture of what stands on a terminal, as SVG with its colors."""

import os

from rich.console import Console
from rich.text import Text

FRAME = """<svg viewBox="-10 -10 {width} {height}" xmlns="http://www.w3.org/2000/svg"><style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
 line-height: {line_height}px; white-space: pre }} {styles}</style><defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
<rect x="-10" y="-10" width="{width}" height="{height}" rx="8" fill="#292929"/><g>
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g></svg>
"""
"""Rich's own frame without its title bar and without a font from the network."""


def picture(text: str) -> str:
    """Return the text of a terminal as SVG."""
    lines = text.strip("\n").split("\n")
    width = max(len(Text.from_ansi(line)) for line in lines) + 2
    console = Console(record=True, width=width, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for line in lines:
        console.print(Text.from_ansi(line), soft_wrap=True, highlight=False)
    return console.export_svg(code_format=FRAME, title="")
