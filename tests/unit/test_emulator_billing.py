"""What the emulated account charges."""

from __future__ import annotations

from decimal import Decimal

import pytest

from emulator.billing import hours_used, item_so_far, per_hour, started_hours
from emulator.price_list import load_catalogue
from emulator.records import BillingItem, Fee

HOUR = 3600.0


def item(**ends: float) -> BillingItem:
    fees = [Fee(2, "guest_core", "cores", "3.9", 0.0), Fee(3, "guest_disk1", "2000 GB", "0.56", 2 * HOUR)]
    return BillingItem(1, 9, 8, 7, "gpu-0", "a.example", "lon04", "AC1_16X120X100", True, 0.0, fees, **ends)


@pytest.mark.parametrize(("seconds", "hours"), [(0, 1), (1, 1), (HOUR, 1), (HOUR + 1, 2), (25 * HOUR, 25)])
def test_every_started_hour_is_billed(seconds, hours):
    assert started_hours(100.0, 100.0 + seconds) == hours


def test_a_part_is_billed_from_the_moment_it_was_added():
    assert item_so_far(item(), 3 * HOUR) == Decimal("3.9") * 3 + Decimal("0.56")


def test_nothing_is_added_after_the_end_of_the_item():
    closed = item(closed=1.5 * HOUR)
    assert item_so_far(closed, 500 * HOUR) == item_so_far(closed, 2 * HOUR)
    assert hours_used(closed, 500 * HOUR) == 2


def test_a_replaced_part_no_longer_counts_per_hour():
    grown = item()
    grown.fees[1].closed = 3 * HOUR
    assert per_hour(grown) == Decimal("3.9")


@pytest.mark.parametrize(("flavour", "dollars"), [("AC1_16X120X100", 9), ("AC2_16X120X100", 13)])
def test_a_pair_with_two_terabytes_and_one_gigabit_costs_what_people_report(flavour, dollars):
    catalogue = load_catalogue()
    each = catalogue.flavour(flavour).hourly
    each += catalogue.disks["guest_disk1", 2000].hourly + catalogue.port_speeds[1000, False].hourly
    assert round(2 * each) == dollars


def test_every_price_id_is_unique():
    catalogue = load_catalogue()
    assert len(catalogue.prices) == len({price.id for price in catalogue.prices.values()})
    listed = [*catalogue.disks.values(), *catalogue.port_speeds.values(), *catalogue.included]
    assert all(catalogue.prices[price.id] == price for price in listed)


def test_a_guest_that_is_not_hourly_pays_whole_months():
    monthly = item(closed=2 * HOUR)
    monthly.hourly = False
    assert item_so_far(monthly, 3 * HOUR) == (Decimal("3.9") + Decimal("0.56")) * 657
