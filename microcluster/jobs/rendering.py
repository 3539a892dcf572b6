"""Filling in the templates: every input must be given, and quoting is a filter of the language that the file is in."""

import shlex
from functools import cache
from pathlib import Path

import jinja2

from microcluster.core.plain_text import lines

TEMPLATES = Path(__file__).parents[2] / "templates"


def render(template: str, **inputs: object) -> str:
    """Return ``templates/<template>`` filled in.

    Filters: ``sh`` quotes one word for a shell, ``py`` writes a value as a Python literal.
    """
    return environment(escaped=False).get_template(template).render(**inputs)


def render_page(template: str, **inputs: object) -> str:
    """Return an HTML page; every value is escaped unless it is marked as safe."""
    return environment(escaped=True).get_template(template).render(**inputs)


@cache
def environment(*, escaped: bool) -> jinja2.Environment:
    """Return where templates are filled in: nothing may be missing. It is kept: compiling one takes longer than all else in a plan."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=escaped,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        finalize=_plain if escaped else None,
        lstrip_blocks=True,
    )
    made.filters["sh"] = lambda value: shlex.quote(str(value))
    made.filters["py"] = repr
    return made


def _plain(value: object) -> object:
    """Take control characters out of what a page shows; what is marked as safe stays so."""
    return type(value)(lines(value)) if isinstance(value, str) else value
