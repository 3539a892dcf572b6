"""What a caller asks to see of the account: object masks (which properties) and object filters (which objects, in which order).

A filter operation that is not emulated is refused by name.
"""

import re
from typing import Any

from emulator.softlayer import faults, types
from emulator.softlayer.views import MISSING, View

Mask = dict[str, "Mask"]
Filter = dict[str, Any]
BROKEN = (AttributeError, KeyError, TypeError, ValueError, IndexError)
TOKEN = re.compile(r"\w+|[\[\],.]")
UNREADABLE = re.compile(r"[^\w\s\[\],.]|[\w\]]\s+\w|\]\w")  # casts, which are not emulated, among it
SIGN = re.compile(r"[!^$*_~<>=]*[=~<>]")  # of the operators that the vendor has
DATES = ("isDate", "betweenDate", "lessThanDate", "greaterThanDate")


def read_mask(mask: str | dict[str, Any] | None, declared: str | None) -> Mask:
    """Read a mask for an object of this type; a property that the type has not is a fault."""
    tree = _parsed(mask)
    check(tree, declared)
    return tree


def check(tree: Mask | Filter, declared: str | None) -> None:
    """Refuse what is no property of its object, following relations by their types; the real service ignores it in a filter."""
    known = types.find(declared)
    for name, below in tree.items() if known else ():
        found = known.property_type(name)
        if found is None:
            raise faults.no_such_property(name, known.name)
        if isinstance(below, dict) and "operation" not in below:
            check(below, found)


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


def rooted(tree: Any, root: str | None) -> Filter:
    """The part of a filter for the listed objects; empty when it is malformed or has another root."""
    below = tree.get(root) if isinstance(tree, dict) and root is not None else tree
    return below if isinstance(below, dict) else {}


def is_ordered(tree: Filter) -> bool:
    """Whether a filter, below its root, orders the objects."""
    return any(True for _ in _orders(tree, ()))


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


def _parsed(mask: str | dict[str, Any] | None) -> Mask:
    """Read ``mask[a,b[c],d.e]`` or several roots."""
    if isinstance(mask, dict):
        raise faults.lacks("an object mask that is no text")
    text = mask or ""
    if UNREADABLE.search(text) or text.count("[") != text.count("]"):
        raise faults.public(f"Unable to parse object mask '{text}'.")
    tree: Mask = {}
    above, below = [tree], tree  # what is open, and where the next name stands
    for token in TOKEN.findall(text):
        if token == "[":
            above.append(below)
        elif token == "]":
            above.pop()
        elif token == ",":
            below = above[-1]
        elif token != ".":
            below = below.setdefault(token, {})
    return _without_roots(tree)


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


def _type_of(declared: str | None, name: str) -> str | None:
    """The type of a property that is about to be shown."""
    if types.find(declared) is None:
        return None
    found = types.shown_as(str(declared), name)
    if found is None:
        raise faults.not_real(name, str(declared).removeprefix(types.PREFIX))
    return found


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
    if operation.startswith(("^=", "$=")):
        wanted, is_beginning = operation[2:].strip(), operation.startswith("^=")
        return any(text.startswith(wanted) if is_beginning else text.endswith(wanted) for text in texts)
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
