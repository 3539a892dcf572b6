"""Whole lists, page by page: in a fixed order, and read anew when their pages do not fit together."""

from collections.abc import Callable
from typing import Any

from providers.paperspace.errors import UNREADABLE, ApiError

PAGE_SIZE = 100
READINGS = 8
MOST_PAGES = 200

Row = dict[str, Any]
ReadPage = Callable[..., dict[str, Any]]


class _Moved(Exception):
    """The list was another one by the time of the next page."""


def read_whole(read: ReadPage, path: str, order_by: str, pause: Callable[[], None]) -> list[Row]:
    """Read a list; one of several pages counts once two readings of it name the same things.

    The API gives no total, so that a row which slips out between two pages is noticed only in this way.

    Args:
        read: reads one page.
        order_by: what the list is put in order by; ``dtCreated`` where it can be.
        pause: called before the list is read anew.

    Raises:
        ApiError: its pages do not fit together: it must never read as "nothing left".
    """
    before: set[str] | None = None
    why = ""
    for reading in range(READINGS):
        if reading:
            pause()
        try:
            rows, pages = _read_once(read, path, order_by)
        except _Moved as moved:
            why = str(moved)
            continue
        names = {_key(row) for row in rows}
        if pages == 1 or names == before:
            return rows
        before, why = names, "two readings differ"
    raise ApiError(f"GET {path}", "truncated list", f"{why}, {READINGS} times")


def _read_once(read: ReadPage, path: str, order_by: str) -> tuple[list[Row], int]:
    rows: list[Row] = []
    query: dict[str, Any] = {"limit": PAGE_SIZE, "orderBy": order_by, "order": "asc"}
    pages = 0
    while pages < MOST_PAGES:
        page = read(**query)
        items = page.get("items")
        if not isinstance(items, list) or not all(isinstance(row, dict) and _key(row) for row in items):
            raise ApiError(f"GET {path}", UNREADABLE, "it is no page of a list")
        rows, pages = [*rows, *items], pages + 1
        if not page.get("hasMore"):
            break
        cursor = page.get("nextPage")
        if not isinstance(cursor, str) or not cursor or cursor == query.get("after") or not items:
            raise _Moved("a page names no next one")
        query = {**query, "after": cursor}
    else:
        raise ApiError(f"GET {path}", "truncated list", f"it has more than {MOST_PAGES} pages")
    places = [str(row.get(order_by) or "") for row in rows]
    if len({_key(row) for row in rows}) < len(rows) or (pages > 1 and places != sorted(places)):
        raise _Moved("its pages do not continue each other")
    return rows, pages


def _key(row: Row) -> str:
    return str(row.get("id") or row.get("ip") or "")
