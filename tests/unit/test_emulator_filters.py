"""Object filters: which objects a list call returns."""

import re

import pytest

from emulator.softlayer.faults import Fault
from emulator.softlayer.queries import select
from emulator.softlayer.views import View


def guest(number: int, hostname: str, *tags: str) -> View:
    references = [{"tag": {"name": tag}} for tag in tags]
    return View(
        {"id": number, "hostname": hostname},
        {"tagReferences": lambda: references, "hourlyBillingFlag": lambda: True, "billingItem": lambda: None},
    )


GUESTS = [guest(3, "gpu-0", "a", "b"), guest(1, "GPU-1", "b"), guest(2, "web-0")]


def ids(tree: dict | None, root: str | None = "virtualGuests") -> list[int]:
    return [view.local["id"] for view in select(GUESTS, tree, root)]


def named(operation: object) -> dict:
    return {"virtualGuests": {"hostname": {"operation": operation}}}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("gpu-0", [3]),
        ("_= gpu-1", [1]),
        ("^= gpu-0", [3]),
        ("$= -0", [3, 2]),
        ("is null", []),
    ],
)
def test_text_operators(operation, expected):
    assert ids(named(operation)) == expected


@pytest.mark.parametrize("operation", ["*=pu", "!= gpu-0", "!~ gpu", "> 3", "not null", "betweenDate"])
def test_an_operation_that_is_not_emulated_is_refused_by_its_name(operation):
    with pytest.raises(Fault, match=rf"does not emulate the operation '{re.escape(operation)}'"):
        ids(named(operation))


def test_in_means_any_of_the_tags():
    tags = {"tag": {"name": {"operation": "in", "options": [{"name": "data", "value": ["a", "x"]}]}}}
    assert ids({"virtualGuests": {"tagReferences": tags}}) == [3]


def test_a_filter_with_the_wrong_root_is_ignored_and_everything_is_returned():
    assert ids({"hostname": {"operation": "gpu-0"}}) == [3, 1, 2]


def test_an_unknown_property_is_ignored():
    assert ids({"virtualGuests": {"nonsense": {"operation": "x"}}}) == [3, 1, 2]


def test_order_by_sorts_under_the_right_root():
    order = {"id": {"operation": "orderBy", "options": [{"name": "sort", "value": ["DESC"]}]}}
    assert ids({"virtualGuests": order}) == [3, 2, 1]


def test_booleans_are_compared_as_the_numbers_that_clients_send():
    assert ids({"virtualGuests": {"hourlyBillingFlag": {"operation": 1}}}) == [3, 1, 2]
    assert ids({"virtualGuests": {"hourlyBillingFlag": {"operation": 0}}}) == []


def test_below_a_missing_relation_everything_is_null():
    below = {"billingItem": {"id": {"operation": "is null"}}}
    assert ids({"virtualGuests": below}) == [3, 1, 2]
    assert ids({"virtualGuests": {"billingItem": {"id": {"operation": 5}}}}) == []
