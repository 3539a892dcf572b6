"""Object masks: the text a caller sends, as a tree, and the part of a view that the tree names."""

import re
from typing import Any

from emulator.softlayer import faults, types
from emulator.softlayer.views import MISSING, View

Mask = dict[str, "Mask"]

_TOKEN = re.compile(r"\s*(?:([A-Za-z_]\w*)|([\[\],.]))")


def read_mask(mask: str | dict[str, Any] | None, declared: str | None) -> Mask:
    """Read a mask for an object of this type; a property that the type has not is a fault."""
    tree = parse_mask(mask)
    check(tree, declared)
    return tree


def check(tree: Mask, declared: str | None) -> None:
    """Refuse what is no property of its object, following relations by their types."""
    known = types.find(declared)
    for name, below in tree.items():
        found = known.property_type(name) if known else None
        if known and found is None:
            raise faults.no_such_property(name, known.name)
        check(below, found)


def parse_mask(mask: str | dict[str, Any] | None) -> Mask:
    """Read ``mask[a,b[c],d.e]``, several roots, or the legacy nested dictionary; casts are not emulated."""
    if not mask:
        return {}
    if isinstance(mask, dict):
        return {key: parse_mask(value if isinstance(value, dict) else None) for key, value in mask.items()}
    tree: Mask = {}
    parser = _Parser(mask)
    for root in parser.group(None):
        _merge(tree, root)
    return _without_roots(tree)


def project(value: Any, mask: Mask, declared: str | None = None) -> Any:
    """The plain data of ``value`` that a mask selects.

    Args:
        declared: the type of ``value``; a property that it does not have is a bug of the emulator.
    """
    if isinstance(value, list | tuple):
        return [project(each, mask, declared) for each in value]
    if isinstance(value, dict):
        value = View(value)
    if not isinstance(value, View):
        return value
    names = set(mask)
    # Naming one local property restricts the level to the named ones; naming only relations adds them.
    shown = [name for name in value.local if not names & value.local.keys() or name in names]
    answer = {name: project(value.local[name], mask.get(name, {}), _type_of(declared, name)) for name in shown}
    for name in names - value.local.keys():
        found = value.read(name)
        if found is not MISSING:
            answer[name] = project(found, mask[name], _type_of(declared, name))
        elif not value.knows(name):
            raise faults.lacks(f"property '{name}' of SoftLayer_{str(declared).removeprefix(types.PREFIX)}")
    return answer


def _type_of(declared: str | None, name: str) -> str | None:
    """The type of a property that is about to be shown."""
    if types.find(declared) is None:
        return None
    found = types.shown_as(str(declared), name)
    if found is None:
        raise faults.not_real(name, str(declared).removeprefix(types.PREFIX))
    return found


def _without_roots(tree: Mask) -> Mask:
    flat: Mask = {}
    for name, below in tree.items():
        if name == "filteredMask":
            raise faults.lacks(name)
        if name == "mask":
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
        return match.group(1) or match.group(2)

    def _unreadable(self) -> faults.Fault:
        return faults.public(f"Unable to parse object mask '{self.text}' near position {self.at}.")
