"""What a volume's inputs may be, what a preview says of it, and which prices its order names."""

from __future__ import annotations

import re

import pytest

from providers.softlayer import block_volume, volume_access, volume_order
from providers.softlayer.money import billing
from providers.softlayer.spec import difference
from providers.softlayer.values import UNKNOWN
from providers.softlayer.volume_spec import VolumeSpec

MARK = "1f3a9c42"
VOLUME = {"mark": MARK, "name": "data", "datacenter": "lon06", "sizeGb": 500, "iopsPerGb": 4}
PERFORMANCE = {**{key: value for key, value in VOLUME.items() if key != "iopsPerGb"}, "iops": 3000}


@pytest.mark.parametrize("inputs", [VOLUME, PERFORMANCE, {**VOLUME, "iopsPerGb": 0.25}, {**VOLUME, "hourly": True}])
def test_what_is_sold_passes(inputs):
    assert block_volume.check(inputs, {}) == []


@pytest.mark.parametrize(
    ("change", "key", "words"),
    [
        ({"sizeGb": 19}, "sizeGb", "no volume of 19 GB is sold; from 20 to 12000"),
        ({"sizeGb": 12001}, "sizeGb", "no volume of 12001 GB"),
        ({"iopsPerGb": 3}, "", "iopsPerGb 3 is no tier; one of 0.25, 2, 4, 10"),
        ({"iopsPerGb": 10, "sizeGb": 4001}, "", "sold up to 4000 GB"),
        ({"iops": 100}, "", "either iopsPerGb .* or iops"),
        ({"iopsPerGb": None}, "", "either iopsPerGb .* or iops"),
        ({"iopsPerGb": None, "iops": 10001}, "", "iops 10001 is not sold with 500 GB; from 100 to 10000"),
        ({"mark": "xyz"}, "mark", "pattern"),
        ({"mark": None}, "mark", "is missing"),
        ({"name": "a; b"}, "name", "pattern"),
        ({"guestIds": ["gpu-0"]}, "guestIds.0", "pattern"),
        ({"colour": "red"}, "colour", "no property"),
    ],
)
def test_what_is_not_sold_or_cannot_work_is_named_before_anybody_is_called(change, key, words):
    inputs = {name: value for name, value in {**VOLUME, **change}.items() if value is not None}
    (problem,) = block_volume.check(inputs, {})
    assert problem.key == key
    assert re.search(words, problem.reason)


def test_a_preview_judges_nothing_that_it_cannot_know():
    assert block_volume.check({**VOLUME, "guestIds": UNKNOWN}, {}) == []
    assert block_volume.caution({**VOLUME, "sizeGb": UNKNOWN}).startswith("It will be billed monthly")
    assert block_volume.known_outputs({**VOLUME, "sizeGb": UNKNOWN}, {}) == {}


@pytest.mark.parametrize("inputs", [VOLUME, {**VOLUME, "hourly": False}])
def test_a_volume_is_monthly_unless_hourly_is_asked_and_the_preview_says_so(inputs):
    said = block_volume.known_outputs(inputs, {})["billing"]
    assert said.startswith("monthly, at least one whole month: 98.50 USD")
    assert said in block_volume.caution(inputs)


def test_an_hourly_volume_needs_no_warning():
    hourly = {**VOLUME, "hourly": True}
    assert block_volume.known_outputs(hourly, {})["billing"].startswith("hourly, until it is deleted: 0.1499 USD")
    assert block_volume.caution(hourly) is None


@pytest.mark.parametrize(
    ("change", "replaced"),
    [
        ({"guestIds": ["7"]}, False),
        ({"description": "the corpus"}, False),
        ({"sizeGb": 1000}, True),
        ({"iopsPerGb": 2}, True),
        ({"datacenter": "lon04"}, True),
        ({"hourly": True}, True),
        ({"name": "other"}, True),
    ],
)
def test_access_and_notes_change_in_place_and_everything_else_replaces(change, replaced):
    assert bool(difference(VOLUME, {**VOLUME, **change}, block_volume.REPLACE_ON).replacing) is replaced


def test_the_notes_begin_with_the_mark_and_hold_name_and_description():
    assert VolumeSpec.of(VOLUME).notes("v100") == f"microcluster v100-{MARK}: data"
    assert VolumeSpec.of({**VOLUME, "description": "d"}).notes("v100") == f"microcluster v100-{MARK}: data; d"


def item(key, code, price, **more):
    """An item of the storage package, with one standard price."""
    standard = {"id": price, "locationGroupId": "", "categories": [{"categoryCode": code}], **more.pop("prices", {})}
    elsewhere = {**standard, "id": price + 1, "locationGroupId": 503}
    return {"keyName": key, "prices": [elsewhere, standard], **more}


def bounds(least, most):
    return {"capacityMinimum": str(least), "capacityMaximum": str(most)}


SPACE, IOPS = "performance_storage_space", "performance_storage_iops"
ITEMS = [
    item("STORAGE_AS_A_SERVICE", "storage_as_a_service", 10),
    item("FILE_STORAGE_2", "storage_file", 20),
    item("BLOCK_STORAGE_2", "storage_block", 30),
    item("STORAGE_SPACE_FOR_0_25_IOPS_PER_GB", SPACE, 40, **bounds(20, 12000)),
    item("STORAGE_SPACE_FOR_4_IOPS_PER_GB", SPACE, 50, **bounds(20, 12000)),
    item("WRITEHEAVY_TIER", "storage_tier_level", 60, capacity="300"),
    item("100_499_GBS", SPACE, 70, **bounds(100, 499)),
    item("500_999_GBS", SPACE, 80, **bounds(500, 999)),
    item(
        "100_6000_IOPS",
        IOPS,
        90,
        **bounds(100, 6000),
        prices={
            "capacityRestrictionType": "STORAGE_SPACE",
            "capacityRestrictionMinimum": "100",
            "capacityRestrictionMaximum": "499",
        },
    ),
    item(
        "100_10000_IOPS",
        IOPS,
        100,
        **bounds(100, 10000),
        prices={
            "capacityRestrictionType": "STORAGE_SPACE",
            "capacityRestrictionMinimum": "500",
            "capacityRestrictionMaximum": "999",
        },
    ),
]


@pytest.mark.parametrize(("inputs", "chosen"), [(VOLUME, [10, 30, 50, 60]), (PERFORMANCE, [10, 30, 80, 100])])
def test_an_order_names_the_four_standard_prices_of_its_size_and_speed(inputs, chosen):
    spec = VolumeSpec.of(inputs)
    assert volume_order.prices(spec, ITEMS) == chosen
    order = volume_order.container(spec, {"id": 759, "items": ITEMS}, 1)
    assert (order["volumeSize"], order["useHourlyPricing"], order.get("iops")) == (500, False, inputs.get("iops"))


def test_only_what_differs_is_authorised_or_deauthorised():
    assert volume_access.changes({"1", "2"}, {"2", "3"}) == (["3"], ["1"])


def test_the_price_of_a_billing_item_is_said_by_the_unit_of_its_bill():
    children = [{"hourlyRecurringFee": 0.1, "recurringFee": 65.7}]
    assert billing({"hourlyFlag": True, "hourlyRecurringFee": 0.15, "children": children}).endswith("0.15 USD an hour")
    assert billing({"recurringFee": 98.55, "children": children}).endswith("98.55 USD a month")
    assert billing(None) is None
