"""Filling in the templates: every input must be given, and quoting is a filter of the language that the file is in."""

from __future__ import annotations

import shlex
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent.parent / "templates"


def render(template: str, **inputs: object) -> str:
    """Return ``templates/<template>`` filled in.

    Filters: ``sh`` quotes one word for a shell, ``py`` writes a value as a Python literal.
    """
    return environment(jinja2.FileSystemLoader(TEMPLATES)).get_template(template).render(**inputs)


def environment(loader: jinja2.BaseLoader) -> jinja2.Environment:
    """Return where templates are filled in: nothing may be missing, and the two filters are known."""
    made = jinja2.Environment(  # noqa: S701 - the files are no HTML; "sh" and "py" quote
        loader=loader,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sh"] = lambda value: shlex.quote(str(value))
    made.filters["py"] = repr
    return made
