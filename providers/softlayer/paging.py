"""Whole lists, page by page: in a fixed order, and read anew when something went while they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from providers.softlayer.errors import ApiError

PAGE_SIZE = 100
READINGS = 4
ASCENDING = {"operation": "orderBy", "options": [{"name": "sort", "value": ["ASC"]}]}
KEYS = {"Network_Pod": "name"}
"""What tells the rows of a service apart, where it is not the id (SoftLayer_Network_Pod has none)."""

Row = dict[str, Any]
ReadPage = Callable[..., list[Row]]


class _Moved(Exception):
    """The list was another one by the time of the next page."""


def read_whole(read: ReadPage, service: str, method: str, pause: Callable[[], None], **options: Any) -> list[Row]:
    """Read a list until its pages fit together.

    Args:
        read: ``Api.read`` or the like; reads one page.
        pause: called before the list is read anew.

    Raises:
        ApiError: its pages do not fit together or are fewer than it says: it must never read as "nothing left".
    """
    key = KEYS.get(service, "id")
    options = {**options, "filter": in_order(service, method, key, options.get("filter"))}
    why = ""
    for reading in range(READINGS):
        if reading:
            pause()
        try:
            return _read_once(lambda offset: read(service, method, limit=PAGE_SIZE, offset=offset, **options), key)
        except _Moved as moved:
            why = str(moved)
    raise ApiError(f"listing {service}::{method}", "truncated list", f"{why}, {READINGS} times")


def in_order(service: str, method: str, key: str, tree: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add an order to a filter: without one the service may list in another order each time.

    The relations of the account are filtered under their own names; `getAllObjects` has no root.
    """
    tree = dict(tree or {})
    if service != "Account":
        return {key: ASCENDING, **tree}
    root = method.removeprefix("get")
    root = root[0].lower() + root[1:]
    return {**tree, root: {key: ASCENDING, **tree.get(root, {})}}


def _read_once(read: Callable[[int], list[Row]], key: str) -> list[Row]:
    """Read from the first page to the last; each page begins with the last row of the one before.

    If that row has kept its place, the rows before it were all read: new ones have higher ids and come at the end.
    """
    rows: list[Row] = []
    while True:
        page = read(max(len(rows) - 1, 0))
        total = getattr(page, "total_count", 0)
        if rows and (not page or key not in page[0] or page[0][key] != rows[-1].get(key)):
            raise _Moved("its pages do not continue each other")
        rows += page[1:] if rows else page
        names = [row[key] for row in rows if key in row]
        if len(set(names)) < len(names):
            raise _Moved("it names something twice")
        # A longer page than was asked for is everything: the method knows no pages.
        if len(page) != PAGE_SIZE or len(rows) == total:
            break
    if len(rows) < total:
        raise _Moved(f"{len(rows)} of {total} came")
    return rows
