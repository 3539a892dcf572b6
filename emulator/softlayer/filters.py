"""Object filters: which views match, and in which order they come; what has another root is ignored, as in reality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from emulator.softlayer import faults, types
from emulator.softlayer.dates import CENTRAL
from emulator.softlayer.views import MISSING, View

Filter = dict[str, Any]

_DATE_FORMATS = ("%m/%d/%Y %H:%M:%S", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d")

# Longest first: "!=" must not be read as "!" and "~" not as the start of "!~".
_TEXT_OPERATORS: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    ("!^=", lambda have, want: not have.startswith(want)),
    ("!$=", lambda have, want: not have.endswith(want)),
    ("!*=", lambda have, want: want not in have),
    ("^=", lambda have, want: have.startswith(want)),
    ("$=", lambda have, want: have.endswith(want)),
    ("*=", lambda have, want: want in have),
    ("_=", lambda have, want: have == want),
    ("!=", lambda have, want: have != want),
    ("!~", lambda have, want: want not in have),
    (">=", lambda have, want: _number(have) >= _number(want)),
    ("<=", lambda have, want: _number(have) <= _number(want)),
    (">", lambda have, want: _number(have) > _number(want)),
    ("<", lambda have, want: _number(have) < _number(want)),
    ("~", lambda have, want: want in have),
)
_NEGATIVE = ("!",)


BROKEN = (AttributeError, KeyError, TypeError, ValueError, IndexError)


@dataclass(frozen=True)
class Narrowing:
    """What a filteredMask does below the top: each list keeps what matches its part of the filter."""

    tree: Filter
    now: float

    def below(self, name: str) -> Narrowing | None:
        """The part of it that speaks of one relation."""
        deeper = self.tree.get(name)
        return Narrowing(deeper, self.now) if isinstance(deeper, dict) and "operation" not in deeper else None

    def of(self, value: Any) -> Any:
        """What is left of a relation."""
        if not isinstance(value, list) or not all(isinstance(each, View | dict) for each in value):
            return value
        return select([_as_view(each) for each in value], self.tree, None, self.now)


def rooted(tree: Any, root: str | None) -> Filter:
    """The part of a filter that speaks of the listed objects; nothing where it is malformed or has another root."""
    below = tree.get(root) if isinstance(tree, dict) and root is not None else tree
    return below if isinstance(below, dict) else {}


def is_ordered(tree: Filter) -> bool:
    """Whether a filter, below its root, says in which order the objects come."""
    return any(True for _ in _orders(tree, ()))


def check(tree: Filter, declared: str | None) -> None:
    """Refuse a property that the listed objects have not; the service itself ignores most such filters and lists everything."""
    known = types.find(declared)
    for name, below in tree.items() if known else ():
        found = known.property_type(name)
        if found is None:
            raise faults.no_such_property(name, known.name)
        if isinstance(below, dict) and "operation" not in below:
            check(below, found)


def select(views: list[View], tree: Any, root: str | None, now: float) -> list[View]:
    """The views that match, in the order the filter asks for; all of them where it cannot be understood."""
    below = rooted(tree, root)
    if not below:
        return views
    try:
        chosen = [view for view in views if _matches(view, below, now)]
        for path, descending in reversed(list(_orders(below, ()))):
            chosen.sort(key=lambda view, path=path: _sort_key(_values(view, path)), reverse=descending)
    except BROKEN:
        return views
    return chosen


def _matches(view: View, tree: Filter, now: float) -> bool:
    return all(_holds([view], name, below, now) for name, below in tree.items())


def _holds(views: list[View], name: str, below: Any, now: float) -> bool:
    if views and not any(view.knows(name) for view in views):
        return True  # An unknown or mis-rooted property is ignored by the service.
    if not isinstance(below, dict):
        return True
    values = [value for view in views for value in _flat(view.read(name))]
    if "operation" in below:
        return _leaf(values, below, now)
    nested = [_as_view(value) for value in values if isinstance(value, View | dict)]
    # One member of a list has to meet all conditions below it, not each condition any member.
    if len(nested) > 1:
        return any(_matches(each, below, now) for each in nested)
    return all(_holds(nested, inner, deeper, now) for inner, deeper in below.items())


def _leaf(values: list[Any], leaf: Filter, now: float) -> bool:
    operation, options = leaf["operation"], _options(leaf)
    values = [value for value in values if value is not None and value != ""]
    match operation:
        case "orderBy":
            holds = True
        case "is null":
            holds = not values
        case "not null":
            holds = bool(values)
        case "in":
            wanted = {_text(each) for each in options["data"]}
            holds = any(_text(value) in wanted for value in values)
        case "or":
            holds = any(_compare(values, each, now) for each in options["data"])
        case "and":
            holds = all(_compare(values, each, now) for each in options["data"])
        case "isDate" | "betweenDate" | "lessThanDate" | "greaterThanDate":
            holds = any(_dated(_moment(str(value), now), operation, options, now) for value in values)
        case _:
            holds = _compare(values, operation, now)
    return holds


def _compare(values: list[Any], operation: Any, now: float) -> bool:
    if not isinstance(operation, str):
        return any(_text(value) == _text(operation) for value in values)
    for sign, test in _TEXT_OPERATORS:
        if operation.startswith(sign):
            wanted = operation[len(sign) :].strip()
            if "sysdate" in wanted:
                limit = str(_moment(wanted, now))
                return any(test(str(_moment(str(value), now)), limit) for value in values)
            found = (test(_text(value), wanted.lower()) for value in values)
            return all(found) if sign.startswith(_NEGATIVE) else any(found)
    return any(str(value) == operation or _text(value) == operation.lower() for value in values)


def _dated(moment: float, operation: str, options: dict[str, list[Any]], now: float) -> bool:
    def option(name: str) -> float:
        return _moment(str(options.get(name, [""])[0]), now)

    if operation == "betweenDate":
        return option("startDate") <= moment <= option("endDate")
    if operation == "lessThanDate":
        return moment < option("date")
    if operation == "greaterThanDate":
        return moment > option("date")
    return option("date") <= moment < option("date") + timedelta(days=1).total_seconds()


def _moment(text: str, now: float) -> float:
    if text.startswith("sysdate"):
        days = text.removeprefix("sysdate").replace(" ", "")
        return now + timedelta(days=float(days or 0)).total_seconds()
    for pattern in _DATE_FORMATS:
        try:
            parsed = datetime.strptime(text, pattern)
        except ValueError:
            continue
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=CENTRAL)).timestamp()
    return 0.0


def _orders(tree: Filter, path: tuple[str, ...]) -> Any:
    for name, below in tree.items():
        if not isinstance(below, dict):
            continue
        if below.get("operation") == "orderBy":
            direction = str(_options(below).get("sort", ["ASC"])[0])
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


def _options(leaf: Filter) -> dict[str, list[Any]]:
    return {each["name"]: each["value"] for each in leaf.get("options") or [] if isinstance(each, dict)}


def _flat(value: Any) -> list[Any]:
    if value is MISSING or value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _as_view(value: View | dict[str, Any]) -> View:
    return value if isinstance(value, View) else View(value)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value).lower()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return _moment(text.upper(), 0.0)
