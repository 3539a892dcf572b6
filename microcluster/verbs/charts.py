"""Curves as inline SVG, without scripts, fonts or images from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pygal
from pygal.style import CleanStyle

STYLE = CleanStyle(
    font_family="system-ui, sans-serif",
    background="transparent",
    plot_background="transparent",
    foreground="var(--pale)",
    foreground_strong="var(--ink)",
    foreground_subtle="var(--pale)",
    guide_stroke_color="var(--line)",
    major_guide_stroke_color="var(--line)",
    guide_stroke_dasharray="0",
    major_guide_stroke_dasharray="0",
    label_font_size=11,
    major_label_font_size=11,
    title_font_size=12,
    legend_font_size=12,
    colors=("var(--line-1)", "var(--line-2)"),
)
"""The colors are CSS variables of the page, which has a light and a dark scheme."""
MOST_POINTS = 400
"""The chart has no room for more; a curve of 50,000 steps has 500."""


def curve(name: str, lines: Mapping[str, Sequence[tuple[int, float]]], *, from_zero: bool = False) -> str:
    """Draw named lines of (step, value) as SVG text; ``from_zero`` begins the axes at zero."""
    chart = pygal.XY(
        js=[],
        disable_xml_declaration=True,
        style=STYLE,
        stroke_style={"width": 2},
        width=720,
        height=270,
        show_dots=False,
        max_scale=8,  # More labels on an axis would overlap.
        include_x_axis=from_zero,
        x_title="step",
        y_title=name,
        legend_at_bottom=len(lines) > 1,
        show_legend=len(lines) > 1,
        no_data_text="nothing yet",
    )
    for title, points in lines.items():
        chart.add(title, list(thinned(points)))
    # The library writes its settings into a script even where nothing reads them.
    return re.sub(r"<script.*?</script>", "", chart.render(is_unicode=True), flags=re.DOTALL)


def thinned(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Keep both ends, and the lowest and highest point of each group, so that no peak is lost."""
    if len(points) <= MOST_POINTS:
        return points
    every = -(-2 * len(points) // MOST_POINTS)
    groups = (points[start : start + every] for start in range(0, len(points), every))
    kept = [point for group in groups for point in sorted({min(group, key=_value), max(group, key=_value)})]
    return [*dict.fromkeys((points[0], *kept, points[-1]))]


def _value(point: tuple[int, float]) -> float:
    return point[1]
