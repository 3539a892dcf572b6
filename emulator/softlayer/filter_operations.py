"""The operations at the leaves of object filters: comparisons of text, numbers and dates."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from emulator.softlayer.dates import CENTRAL

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


def holds_for(values: list[Any], leaf: Filter, now: float) -> bool:
    """Whether the values of a property meet a leaf of the filter."""
    operation, options = leaf["operation"], options_of(leaf)
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


def options_of(leaf: Filter) -> dict[str, list[Any]]:
    """The options of a leaf by name."""
    return {each["name"]: each["value"] for each in leaf.get("options") or [] if isinstance(each, dict)}


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


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value).lower()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return _moment(text.upper(), 0.0)
