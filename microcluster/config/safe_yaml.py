"""Reads a stack file as plain YAML: no tags, anchors or duplicate keys; limited depth and size."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from core.plain_text import printable, shown

LARGEST_BYTES = 64 * 1024
DEEPEST = 8
"""A stack file has three levels; the library's composer recurses for each."""
PLAIN_TAGS = (None, "!")


class TextProblem(Exception):
    """The text is no stack file; the message begins with the key's path or the line."""


class _Plain(yaml.SafeLoader):
    """Reads dates as text; no key of a stack file takes one."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass
class _Level:
    """One open mapping or list; in a mapping, ``key`` is None while the next scalar is a key."""

    is_mapping: bool
    key: str | None = None
    seen: set[str] = field(default_factory=set)
    items: int = 0


def read(content: bytes) -> Any:
    """Parse ``content``.

    Raises:
        TextProblem: it is not plain YAML.
    """
    if len(content) > LARGEST_BYTES:
        raise TextProblem(f"it has {len(content):,} bytes; a stack file has fewer than {LARGEST_BYTES:,}")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextProblem(f"byte {error.start} is no UTF-8") from error
    try:
        _refuse_traps(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.load(text, Loader=_Plain)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise TextProblem(_where(error)) from error
    except ValueError as error:  # A number with thousands of digits.
        raise TextProblem(f"a value is none: {error}") from error


def _refuse_traps(events: Iterator[yaml.Event]) -> None:
    levels: list[_Level] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise TextProblem(f"{_path(levels)}: anchors and aliases (& and *) are not used here; write the value out")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None) not in PLAIN_TAGS:
            raise TextProblem(f"{_path(levels)}: the tag {shown(event.tag)} is not used here; write a plain value")
        if isinstance(event, yaml.CollectionEndEvent):
            levels.pop()
            _count(levels)
        elif isinstance(event, yaml.CollectionStartEvent):
            _go_down(levels, event)
        elif isinstance(event, yaml.ScalarEvent):
            _take(levels, event.value)


def _go_down(levels: list[_Level], event: yaml.CollectionStartEvent) -> None:
    if levels and levels[-1].is_mapping and levels[-1].key is None:
        raise TextProblem(f"{_path(levels)}: a key is a list or a mapping; a key is a word")
    if len(levels) == DEEPEST:
        raise TextProblem(f"{_path(levels)}: nested more than {DEEPEST} deep")
    levels.append(_Level(isinstance(event, yaml.MappingStartEvent)))


def _take(levels: list[_Level], scalar: str) -> None:
    """Handle a scalar: the next key of a mapping, or a value."""
    level = levels[-1] if levels else None
    if level is None or not level.is_mapping or level.key is not None:
        _count(levels)
        return
    if scalar in level.seen:
        raise TextProblem(f"{_path(levels)}/{printable(scalar)}: written twice; keep one of them")
    if scalar == "<<":
        raise TextProblem(f"{_path(levels)}: merging with << is not used here; write the values out")
    level.seen.add(scalar)
    level.key = scalar


def _count(levels: list[_Level]) -> None:
    """Note that a value has ended."""
    if levels:
        levels[-1].items += 1
        levels[-1].key = None


def _path(levels: list[_Level]) -> str:
    parts = [level.key if level.is_mapping else str(level.items) for level in levels]
    return "/".join(printable(part) for part in parts if part is not None) or "the file"


def _where(error: yaml.YAMLError) -> str:
    """Return place and reason of a syntax error."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return printable(" ".join(str(error).split()))
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {printable(error.problem or 'unreadable')}"
