"""Whole lists: whatever the account does between two pages, every row that stays is there once, or it is an error."""

import itertools
from functools import partial

import pytest
import SoftLayer

from providers.rental.wire import read_whole
from providers.softlayer.api import ASCENDING, PAGE_SIZE, in_order, read_pages
from providers.softlayer.errors import ApiError

ORDER_BY_ID = {"id": ASCENDING}


class Shelf:
    """A list as the account keeps it; ``between`` changes it after each page."""

    def __init__(self, count: int, *, total: bool = True, between=lambda rows: None) -> None:
        self.rows = [{"id": number} for number in range(count)]
        self.calls = 0
        self._total = total
        self._between = between

    def read(self, service, method, *, limit, offset, **_):
        self.calls += 1
        assert self.calls < 50, "it never ends"
        page = self.page(limit, offset)
        total = len(self.rows) if self._total else 0
        self._between(self.rows)
        return SoftLayer.transports.SoftLayerListResult(page, total)

    def page(self, limit, offset):
        return self.rows[offset : offset + limit]


class Deaf(Shelf):
    """A method that ignores the offset."""

    def page(self, limit, offset):
        return self.rows[:limit]


class Pageless(Shelf):
    """A method that knows no pages at all."""

    def page(self, limit, offset):
        return list(self.rows)


class Unsorted(Shelf):
    """A list that turns with every call."""

    def page(self, limit, offset):
        turned = self.rows[self.calls * 7 % len(self.rows) :] + self.rows[: self.calls * 7 % len(self.rows)]
        return turned[offset : offset + limit]


class Short(Shelf):
    """A list that says that it is longer than what comes."""

    def page(self, limit, offset):
        return self.rows[offset : offset + limit][: max(120 - offset, 0)]


def ids(shelf: Shelf) -> list[int]:
    def page(offset):
        return shelf.read("Account", "getSshKeys", limit=PAGE_SIZE, offset=offset)

    return [row["id"] for row in read_whole("listing", partial(read_pages, page, "id"), ApiError, lambda: None)]


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("count", [0, 1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 2 * PAGE_SIZE - 1, 350])
def test_every_row_comes_once(count, total):
    assert ids(Shelf(count, total=total)) == list(range(count))


def test_a_short_list_takes_one_call():
    shelf = Shelf(PAGE_SIZE - 1)
    ids(shelf)
    assert shelf.calls == 1


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("gone", [0, 50, PAGE_SIZE - 1, PAGE_SIZE, 149])
def test_a_row_that_goes_between_two_pages_takes_no_other_one_with_it(gone, total):
    removed = itertools.chain([gone], itertools.repeat(None))

    def remove(rows) -> None:
        place = next(removed)
        if place is not None:
            del rows[place]

    found = ids(Shelf(150, total=total, between=remove))
    assert set(range(150)) - set(found) <= {gone}
    assert len(found) == len(set(found))


def test_a_list_of_which_a_row_goes_each_time_is_an_error_and_not_a_part_of_it():
    shelf = Shelf(190, between=lambda rows: rows.pop(0))
    with pytest.raises(ApiError, match="truncated list"):
        ids(shelf)


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("kind", [Deaf, Unsorted])
def test_pages_that_do_not_fit_together_are_an_error(kind, total):
    with pytest.raises(ApiError, match="do not continue each other|names something twice"):
        ids(kind(250, total=total))


@pytest.mark.parametrize("count", [PAGE_SIZE, PAGE_SIZE + 1, 5 * PAGE_SIZE])
def test_a_method_that_knows_no_pages_is_read_once(count):
    assert ids(Pageless(count)) == list(range(count))


def test_a_method_that_ignores_the_offset_is_whole_when_its_total_says_so():
    assert ids(Deaf(PAGE_SIZE)) == list(range(PAGE_SIZE))
    with pytest.raises(ApiError):
        ids(Deaf(PAGE_SIZE, total=False))


def test_a_list_shorter_than_it_says_is_an_error():
    with pytest.raises(ApiError, match="120 of 150 came"):
        ids(Short(150))


def test_a_row_that_comes_twice_in_one_page_is_an_error():
    shelf = Shelf(10)
    shelf.rows[3] = shelf.rows[4]
    with pytest.raises(ApiError, match="twice"):
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
