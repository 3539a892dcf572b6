"""Lists: in the order that is asked for, page by page, each page with the cursor of the next one."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from emulator.paperspace.errors import invalid
from emulator.paperspace.operations import DESCENDING, Call

View = dict[str, Any]


def page(views: Sequence[View], call: Call, default_size: int, shuffle: Random | None = None) -> View:
    """One page of a list.

    Args:
        shuffle: an injected fault gives every page another order.
    """
    given = call.input
    key = given.get("orderBy", call.operation.order_by[0])
    ordered = sorted(views, key=lambda view: _position(view, key), reverse=given.get("order", DESCENDING) == DESCENDING)
    if shuffle:
        ordered = shuffle.sample(ordered, len(ordered))
    begin = _begin(ordered, key, given)
    items = ordered[begin : begin + given.get("limit", default_size)]
    has_more = begin + len(items) < len(ordered)
    return {"hasMore": has_more, "items": items} | ({"nextPage": _cursor(items[-1], key)} if has_more else {})


def _position(view: View, key: str) -> list[str]:
    return [str(view[key]), _identity(view)]


def _identity(view: View) -> str:
    return str(view.get("id") or view.get("ip"))


def _begin(ordered: Sequence[View], key: str, given: Mapping[str, Any]) -> int:
    """Where the page begins: behind what the cursor names, even if that is gone meanwhile."""
    if "after" not in given:
        return 0
    after = _read_cursor(given["after"])
    for number, view in enumerate(ordered):
        if _position(view, key) == after:
            return number + 1
    is_descending = given.get("order", DESCENDING) == DESCENDING
    passed = (_position(view, key) > after if is_descending else _position(view, key) < after for view in ordered)
    return sum(passed)


def _cursor(view: View, key: str) -> str:
    return base64.urlsafe_b64encode(json.dumps(_position(view, key)).encode()).decode()


def _read_cursor(text: str) -> list[str]:
    try:
        read = json.loads(base64.urlsafe_b64decode(text.encode()))
    except (binascii.Error, ValueError) as wrong:
        raise invalid("after: Invalid cursor") from wrong
    if not (isinstance(read, list) and len(read) == 2 and all(isinstance(each, str) for each in read)):
        raise invalid("after: Invalid cursor")
    return read
