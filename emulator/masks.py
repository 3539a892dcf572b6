"""Object masks: the text a caller sends, as a tree, and the part of a view that the tree names."""

from __future__ import annotations

import re
from typing import Any

from . import faults
from .filters import Narrowing
from .properties import LEFT_OUT
from .views import MISSING, View

Mask = dict[str, "Mask"]

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|(\([^)]*\))|([\[\],.]))")
_ROOTS = {"mask", "filteredMask"}


def is_filtered(mask: str | dict[str, Any] | None) -> bool:
    """Whether the caller wants the lists below narrowed by the filter as well."""
    return isinstance(mask, str) and mask.strip().startswith("filteredMask")


def parse_mask(mask: str | dict[str, Any] | None) -> Mask:
    """Read ``mask[a,b[c],d.e]``, several roots, casts, or the legacy nested dictionary."""
    if not mask:
        return {}
    if isinstance(mask, dict):
        return {key: parse_mask(value if isinstance(value, dict) else None) for key, value in mask.items()}
    tree: Mask = {}
    parser = _Parser(mask)
    for root in parser.group(None):
        _merge(tree, root)
    return _without_roots(tree)


def project(value: Any, mask: Mask, narrowing: Narrowing | None = None) -> Any:
    """The plain data that a caller gets of ``value`` under ``mask``; a property that no such object has is a fault.

    Args:
        narrowing: what a filteredMask leaves of the lists below.
    """
    if isinstance(value, list | tuple):
        return [project(each, mask, narrowing) for each in value]
    if isinstance(value, dict):
        value = View(value)
    if not isinstance(value, View):
        return value
    names = set(mask)
    # Naming one local property restricts the level to the named ones; naming only relations adds them.
    shown = [name for name in value.local if not names & value.local.keys() or name in names]
    answer = {name: project(value.local[name], mask.get(name, {})) for name in shown}
    for name in names - value.local.keys():
        found = value.read(name)
        if found is not MISSING:
            below = narrowing.below(name) if narrowing else None
            answer[name] = project(below.of(found) if below else found, mask[name], below)
        elif not value.knows(name) and name not in LEFT_OUT:
            raise faults.public(f"Property '{name}' is not valid in this object mask; there are {_sample(value)}.")
    return answer


def _sample(view: View) -> str:
    """Some properties by which a person recognises the object that was meant."""
    return ", ".join(sorted({*view.local, *view.relations})[:8]) + ", ..."


def _without_roots(tree: Mask) -> Mask:
    flat: Mask = {}
    for name, below in tree.items():
        if name in _ROOTS:
            _merge(flat, _without_roots(below))
        else:
            _merge(flat, {name: below})
    return flat


def _merge(into: Mask, other: Mask) -> None:
    for name, below in other.items():
        _merge(into.setdefault(name, {}), below)


class _Parser:
    """A reader of one mask's text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.token = self._next()

    def group(self, end: str | None) -> list[Mask]:
        """Comma-separated members up to ``end``."""
        members = []
        while self.token != end:
            if self.token is None:
                raise self._unreadable()
            if self.token == ",":
                self._advance()
            else:
                members.append(self._member())
        self._advance()
        return members

    def _member(self) -> Mask:
        if self.token == "[":
            return self._bracket()
        name = self.token
        if name is None or not (name[0].isalpha() or name[0] == "_"):
            raise self._unreadable()
        self._advance()
        while self.token is not None and self.token.startswith("("):
            self._advance()
        below: Mask = {}
        if self.token == ".":
            self._advance()
            below = self._member()
        elif self.token == "[":
            below = self._bracket()
        return {name: below}

    def _bracket(self) -> Mask:
        self._advance()
        tree: Mask = {}
        for member in self.group("]"):
            _merge(tree, member)
        return tree

    def _advance(self) -> None:
        self.token = self._next()

    def _next(self) -> str | None:
        if not self.text[self.at :].strip():
            return None
        match = _TOKEN.match(self.text, self.at)
        if not match:
            raise self._unreadable()
        self.at = match.end()
        return match.group(1) or match.group(2) or match.group(3)

    def _unreadable(self) -> faults.Fault:
        return faults.public(f"Unable to parse object mask '{self.text}' near position {self.at}.")
