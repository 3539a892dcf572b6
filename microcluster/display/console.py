"""Rich's console and tables for text from outside: no markup, no emoji codes, no control characters."""

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from microcluster.core.plain_text import lines, one_line

WIDTH = 200
"""Width of a table in characters where standard output is no terminal."""


class PlainConsole(Console):
    """Prints every text literally, in any renderable."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Clean a whole text first: rich's own Text drops single characters of a control sequence."""
        return super().render_str(lines(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Clean the text of each segment; rich adds its own colors later."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=lines(segment.text))


def show_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None, *, right: Collection[str] = ()
) -> None:
    """Print a table on standard output, with lines around its cells where it has a title.

    Args:
        right: the columns that are aligned at the right.
    """
    look = {"title": one_line(title), "title_justify": "left"} if title else {"box": None, "pad_edge": False}
    table = Table(**look)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    PlainConsole(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH).print(table)
