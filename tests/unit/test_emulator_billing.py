"""Charges of the emulated account."""

from datetime import datetime
from decimal import Decimal

import pytest

from emulator.softlayer.billing import charged, started_hours
from emulator.softlayer.catalog import load_catalog
from emulator.softlayer.dates import CENTRAL, anniversaries_before, anniversary, next_anniversary
from emulator.softlayer.records import BillingItem, Fee

HOUR = 3600.0
DAY = 24 * HOUR
NOON = datetime(2026, 1, 15, 12, tzinfo=CENTRAL).timestamp()
MONTH = (Decimal("3.9") + Decimal("0.56")) * 657


def item(*, hourly: bool = True, opened: float = 0.0, **ends: float) -> BillingItem:
    fees = [Fee(2, "guest_core", "cores", "3.9"), Fee(3, "guest_disk1", "2000 GB", "0.56")]
    return BillingItem(1, 9, 7, hourly, opened, fees, **ends)


@pytest.mark.parametrize(("seconds", "hours"), [(0, 1), (1, 1), (HOUR, 1), (HOUR + 1, 2), (25 * HOUR, 25)])
def test_every_started_hour_is_billed(seconds, hours):
    assert started_hours(100.0, 100.0 + seconds) == hours
    assert charged(item(closed=1.5 * HOUR), 500 * HOUR) == 2 * (Decimal("3.9") + Decimal("0.56")), "not after its end"


@pytest.mark.parametrize(("flavor", "dollars"), [("AC1_16X120X100", 9), ("AC2_16X120X100", 13)])
def test_a_pair_with_two_terabytes_and_one_gigabit_costs_what_people_report(flavor, dollars):
    catalog = load_catalog()
    each = sum(price.hourly for price in catalog.flavor(flavor).prices)
    each += catalog.sized["guest_disk1", 2000].hourly + catalog.sized["port_speed", 1000].hourly
    assert round(2 * each) == dollars


def test_a_monthly_guest_pays_its_first_month_in_full_at_once():
    assert charged(item(hourly=False, opened=NOON), NOON) == MONTH
    assert charged(item(hourly=False, opened=NOON, closed=NOON + HOUR), NOON + 100 * DAY) == MONTH


@pytest.mark.parametrize(("days", "months"), [(31, 1), (31.01, 2), (31 + 28.01, 3)])
def test_a_monthly_guest_pays_again_on_each_anniversary_and_not_before(days, months):
    assert charged(item(hourly=False, opened=NOON), NOON + days * DAY) == months * MONTH


@pytest.mark.parametrize(
    ("first", "number", "then"),
    [
        ("2026-01-31T10:00", 1, "2026-02-28T10:00"),
        ("2026-01-31T10:00", 2, "2026-03-31T10:00"),
        ("2026-11-30T00:00", 3, "2027-02-28T00:00"),
    ],
)
def test_an_anniversary_is_the_same_day_or_a_shorter_months_last(first, number, then):
    moments = [datetime.fromisoformat(each).replace(tzinfo=CENTRAL).timestamp() for each in (first, then)]
    assert anniversary(moments[0], number) == moments[1]
    assert next_anniversary(moments[0], moments[1] - 1) == moments[1]
    assert anniversaries_before(moments[0], moments[1]) == number - 1
    assert anniversaries_before(moments[0], moments[1] + 1) == number
