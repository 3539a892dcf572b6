"""Whole lists: whatever the account does between two pages, every row that stays is there once, or it is an error."""

import itertools
from functools import partial

import pytest
import SoftLayer

from microcluster.accounts.softlayer.api import ASCENDING, PAGE_SIZE, Api, in_order, read_pages
from microcluster.accounts.softlayer.errors import ApiError

ORDER_BY_ID = {"id": ASCENDING}


class Shelf:
    """A list as the account keeps it; ``between`` changes it after each page, and ``page`` is how it is cut."""

    def __init__(self, count: int, page=None, *, total: bool = True, between=lambda rows: None) -> None:
        self.rows = [{"id": number} for number in range(count)]
        self.calls = 0
        self._page = page or (lambda rows, limit, offset, _: rows[offset : offset + limit])
        self._total = total
        self._between = between

    def read(self, limit, offset):
        self.calls += 1
        assert self.calls < 50, "it never ends"
        page = self._page(list(self.rows), limit, offset, self.calls)
        total = len(self.rows) if self._total else 0
        self._between(self.rows)
        return SoftLayer.transports.SoftLayerListResult(page, total)


def deaf(rows, limit, offset, call):
    """Ignore the offset."""
    return rows[:limit]


def pageless(rows, limit, offset, call):
    """Know no pages at all."""
    return rows


def unsorted(rows, limit, offset, call):
    """Turn the list with every call."""
    turned = call * 7 % len(rows)
    return [*rows[turned:], *rows[:turned]][offset : offset + limit]


def short(rows, limit, offset, call):
    """Say that it is longer than what comes."""
    return rows[offset : offset + limit][: max(120 - offset, 0)]


def ids(shelf: Shelf) -> list[int]:
    reading = partial(read_pages, partial(shelf.read, PAGE_SIZE), "id")
    return [row["id"] for row in Api(None, time_scale=0.001).whole("listing", reading)]


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("count", [0, 1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 2 * PAGE_SIZE - 1, 350])
def test_every_row_comes_once(count, total):
    shelf = Shelf(count, total=total)
    assert ids(shelf) == list(range(count))
    assert shelf.calls == 1 or count >= PAGE_SIZE


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("gone", [0, 50, PAGE_SIZE - 1, PAGE_SIZE, 149])
def test_a_row_that_vanishes_between_pages_hides_no_other(gone, total):
    removed = itertools.chain([gone], itertools.repeat(None))

    def remove(rows) -> None:
        place = next(removed)
        if place is not None:
            del rows[place]

    found = ids(Shelf(150, total=total, between=remove))
    assert set(range(150)) - set(found) <= {gone}
    assert len(found) == len(set(found))


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("page", [deaf, unsorted])
def test_pages_that_do_not_fit_together_are_an_error(page, total):
    with pytest.raises(ApiError, match="do not continue each other|names something twice"):
        ids(Shelf(250, page, total=total))


@pytest.mark.parametrize("count", [PAGE_SIZE, PAGE_SIZE + 1, 5 * PAGE_SIZE])
def test_a_method_that_knows_no_pages_is_read_once(count):
    assert ids(Shelf(count, pageless)) == list(range(count))


def test_a_list_of_a_method_without_offset_is_whole_by_its_total():
    assert ids(Shelf(PAGE_SIZE, deaf)) == list(range(PAGE_SIZE))
    with pytest.raises(ApiError):
        ids(Shelf(PAGE_SIZE, deaf, total=False))


@pytest.mark.parametrize(
    ("shelf", "said"),
    [
        (Shelf(190, between=lambda rows: rows.pop(0)), "truncated list"),
        (Shelf(150, short), "120 of 150 came"),
        (Shelf(10, lambda rows, *_: [*rows[:4], rows[3], *rows[5:]]), "twice"),
    ],
    ids=["a row goes each time", "shorter than it says", "a row twice in one page"],
)
def test_a_list_that_cannot_be_whole_is_an_error(shelf, said):
    with pytest.raises(ApiError, match=said):
        ids(shelf)


@pytest.mark.parametrize(
    ("service", "method", "tree", "ordered"),
    [
        ("Account", "getSshKeys", None, {"sshKeys": ORDER_BY_ID}),
        (
            "Account",
            "getOrders",
            {"orders": {"items": {"domainName": {"operation": "x"}}}},
            {"orders": {**ORDER_BY_ID, "items": {"domainName": {"operation": "x"}}}},
        ),
        ("Network_SecurityGroup", "getAllObjects", None, ORDER_BY_ID),
    ],
)
def test_every_list_is_asked_for_in_a_fixed_order(service, method, tree, ordered):
    assert in_order(service, method, "id", tree) == ordered
