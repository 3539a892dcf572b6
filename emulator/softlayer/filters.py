"""Object filters: which views match, and in which order; an operation that is not emulated is refused by name."""

import re
from typing import Any

from emulator.softlayer import faults, types
from emulator.softlayer.views import MISSING, View

Filter = dict[str, Any]
BROKEN = (AttributeError, KeyError, TypeError, ValueError, IndexError)
SIGN = re.compile(r"[!^$*_~<>=]*[=~<>]")  # of the operators that the vendor has
DATES = ("isDate", "betweenDate", "lessThanDate", "greaterThanDate")


def rooted(tree: Any, root: str | None) -> Filter:
    """The part of a filter for the listed objects; empty when it is malformed or has another root."""
    below = tree.get(root) if isinstance(tree, dict) and root is not None else tree
    return below if isinstance(below, dict) else {}


def is_ordered(tree: Filter) -> bool:
    """Whether a filter, below its root, orders the objects."""
    return any(True for _ in _orders(tree, ()))


def check(tree: Filter, declared: str | None) -> None:
    """Refuse a property that the objects do not have; the real service would list everything."""
    known = types.find(declared)
    for name, below in tree.items() if known else ():
        found = known.property_type(name)
        if found is None:
            raise faults.no_such_property(name, known.name)
        if isinstance(below, dict) and "operation" not in below:
            check(below, found)


def select(views: list[View], tree: Any, root: str | None) -> list[View]:
    """The views that match, in the order of the filter; all views when the filter cannot be understood."""
    below = rooted(tree, root)
    if not below:
        return views
    try:
        chosen = [view for view in views if _matches(view, below)]
        for path, descending in reversed(list(_orders(below, ()))):
            chosen.sort(key=lambda view, path=path: _sort_key(_values(view, path)), reverse=descending)
    except BROKEN:
        return views
    return chosen


def _matches(view: View, tree: Filter) -> bool:
    return all(_holds([view], name, below) for name, below in tree.items())


def _holds(views: list[View], name: str, below: Any) -> bool:
    if views and not any(view.knows(name) for view in views):
        return True  # An unknown or mis-rooted property is ignored by the service.
    if not isinstance(below, dict):
        return True
    values = [value for view in views for value in _flat(view.read(name))]
    if "operation" in below:
        return _holds_for(values, below)
    nested = [_as_view(value) for value in values if isinstance(value, View | dict)]
    # One member of a list has to meet all conditions below it, not each condition any member.
    if len(nested) > 1:
        return any(_matches(each, below) for each in nested)
    return all(_holds(nested, inner, deeper) for inner, deeper in below.items())


def _holds_for(values: list[Any], leaf: Filter) -> bool:
    """Whether the values of a property meet a leaf of the filter."""
    operation = leaf["operation"]
    texts = [_text(value) for value in values if value is not None and value != ""]
    if operation == "orderBy":
        return True
    if operation == "is null":
        return not texts
    if operation == "in":
        wanted = [_text(each) for each in _options_of(leaf)["data"]]
        return any(text in wanted for text in texts)
    operation = _text(operation)
    if operation.startswith("_="):
        return operation.removeprefix("_=").strip() in texts
    if operation.startswith("$="):
        return any(text.endswith(operation.removeprefix("$=").strip()) for text in texts)
    if operation in ("not null", "or", "and", *map(str.lower, DATES)) or SIGN.match(operation):
        raise faults.lacks(f"the operation '{leaf['operation']}' of object filters")
    return operation in texts


def _options_of(leaf: Filter) -> dict[str, list[Any]]:
    """The options of a leaf by name."""
    return {each["name"]: each["value"] for each in leaf.get("options") or [] if isinstance(each, dict)}


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value).lower()


def _orders(tree: Filter, path: tuple[str, ...]) -> Any:
    for name, below in tree.items():
        if not isinstance(below, dict):
            continue
        if below.get("operation") == "orderBy":
            direction = str(_options_of(below).get("sort", ["ASC"])[0])
            yield (*path, name), direction.upper() == "DESC"
        elif "operation" not in below:
            yield from _orders(below, (*path, name))


def _values(view: View, path: tuple[str, ...]) -> list[Any]:
    values: list[Any] = [view]
    for name in path:
        views = [_as_view(value) for value in values if isinstance(value, View | dict)]
        values = [value for each in views for value in _flat(each.read(name))]
    return values


def _sort_key(values: list[Any]) -> tuple[int, float, str]:
    first = values[0] if values else None
    if isinstance(first, int | float):
        return 1, float(first), ""
    return (0, 0.0, "") if first is None else (2, 0.0, str(first).lower())


def _flat(value: Any) -> list[Any]:
    if value is MISSING or value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _as_view(value: View | dict[str, Any]) -> View:
    return value if isinstance(value, View) else View(value)
