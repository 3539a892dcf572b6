"""Object masks (properties to show) and object filters (objects to show, and their order).

What is not emulated of them is refused by name.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from emulator.softlayer import faults, types

Mask = dict[str, "Mask"]
Filter = dict[str, Any]
Path = tuple[str, ...]
TOKEN = re.compile(r"\w+|[\[\],.]")
UNREADABLE = re.compile(r"[^\w\s\[\],.]|[\w\]]\s+\w|\]\w")  # casts to other types among it
CAST = re.compile(r"^mask\((\w+)\)")
BY_TEXT = {"_=": str.__eq__, "^=": str.startswith, "$=": str.endswith, "*=": str.__contains__}  # whatever the case
NO_VALUE = re.compile(r"[!<>~]|(not null|orderBy)$")  # how operations begin that are not emulated


@dataclass(frozen=True)
class View:
    """One SoftLayer object as the API shows it; a relation that answers None is not there."""

    local: dict[str, Any]
    relations: dict[str, Callable[[], Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """A list answer; it is filtered under ``root``, ordered, paged and masked before it is sent."""

    views: list[View]
    root: str | None = None


def read_mask(mask: str | None, declared: str | None) -> Mask:
    """Read ``mask[a,b[c],d.e]`` for an object of this type; a property that the type has not is a fault."""
    text = mask or ""
    cast = CAST.match(text)
    if cast and types.extends(cast[1], declared):
        text, declared = f"mask{text[cast.end() :]}", cast[1]
    if UNREADABLE.search(text) or text.count("[") != text.count("]"):
        raise faults.public(f"Unable to parse object mask '{text}'.")
    tree: Mask = {}
    open_levels, level = [tree], tree  # what is open, and where the next name stands
    for token in TOKEN.findall(text):
        if token == "[":
            open_levels.append(level)
        elif token == "]":
            open_levels.pop()
        elif token == ",":
            level = open_levels[-1]
        elif token != ".":
            level = level.setdefault(token, {})
    tree = tree.get("mask", tree)
    check(tree, declared)
    return tree


def check(tree: Mask | Filter, declared: str | None) -> None:
    """Refuse what is no property of its object, following relations by their types; the real service ignores it in a filter."""
    known = types.find(declared)
    for name, below in tree.items() if known else ():
        found = known.properties.get(name)
        if found is None:
            raise faults.no_such_property(name, known.name)
        if "operation" not in below:
            check(below, found)


def project(value: Any, mask: Mask, declared: str | None = None) -> Any:
    """The plain data of ``value`` that a mask selects.

    Args:
        declared: the type of ``value``; a property that it does not have is a bug of the emulator.
    """
    if isinstance(value, list):
        return [project(each, mask, declared) for each in value]
    if isinstance(value, dict):
        value = View(value)
    if not isinstance(value, View):
        return value
    # Naming one local property restricts the level to the named ones; naming only relations adds them.
    is_restricted = not mask.keys().isdisjoint(value.local)
    shown = [name for name in value.local if not is_restricted or name in mask]
    answer = {}
    for name in [*shown, *(mask.keys() - value.local.keys())]:
        found = _read(value, name, declared)
        if found is not None or name in value.local:
            answer[name] = project(found, mask.get(name, {}), _type_of(declared, name))
    return answer


def select(views: list[View], tree: Filter) -> list[View]:
    """The views that meet every condition of a filter, in the order that it asks for."""
    for path, leaf in _leaves(tree, ()):
        match leaf:
            case {"operation": "orderBy", "options": [{"name": "sort", "value": ["ASC" | "DESC" as direction]}]}:
                views = sorted(views, key=lambda view, at=path: _values(view, at), reverse=direction == "DESC")
            case _:
                views = [view for view in views if _meets(_values(view, path), leaf)]
    return views


def is_ordered(tree: Filter) -> bool:
    """Whether a filter, below its root, orders the objects."""
    return any(leaf["operation"] == "orderBy" for _, leaf in _leaves(tree, ()))


def _leaves(tree: Filter, path: Path) -> Iterator[tuple[Path, Filter]]:
    """The conditions and sort orders of a filter, each with the path of its property."""
    for name, below in tree.items():
        if "operation" in below:
            yield (*path, name), below
        else:
            yield from _leaves(below, (*path, name))


def _meets(values: list[Any], leaf: Filter) -> bool:
    """Whether a property, which has several values below a list, meets a condition."""
    texts = [str(int(each) if isinstance(each, bool) else each) for each in values]
    match leaf:
        case {"operation": "is null"}:
            return not texts
        case {"operation": "in", "options": [{"name": "data", "value": wanted}]}:
            return any(str(each) in texts for each in wanted)
        case {"operation": str(text)} if text[:2] in BY_TEXT:
            return any(BY_TEXT[text[:2]](each.lower(), text[2:].strip().lower()) for each in texts)
        case {"operation": plain} if "options" not in leaf and not NO_VALUE.match(str(plain)):
            return str(plain) in texts
    raise faults.lacks(f"the operation '{leaf['operation']}' of object filters")


def _values(value: Any, path: Path) -> list[Any]:
    """The values of a property by its path: one of each member where a list is on the way."""
    if isinstance(value, list):
        return [found for each in value for found in _values(each, path)]
    if not path:
        return [value]
    view = View(value) if isinstance(value, dict) else value
    found = _read(view, path[0], None)
    return [] if found is None else _values(found, path[1:])


def _read(view: View, name: str, declared: str | None) -> Any:
    """A property of an object, or the count of a list; None where a relation is not there."""
    if name in view.local:
        return view.local[name]
    if name in view.relations:
        return view.relations[name]()
    counted = next((view.relations[each]() for each in view.relations if types.count_of(each) == name), None)
    if isinstance(counted, list):
        return len(counted)
    raise faults.lacks(f"property '{name}' of SoftLayer_{(declared or 'Entity').removeprefix(types.PREFIX)}")


def _type_of(declared: str | None, name: str) -> str | None:
    """The type of a property that is about to be shown."""
    known = types.find(declared)
    if known and name not in known.properties:
        raise faults.not_real(name, known.name)
    return known.properties[name] if known else None
