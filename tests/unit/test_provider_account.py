"""Money, as the account shows it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from microcluster.accounts.shared.receipt import Charge, as_lines, receipt
from microcluster.accounts.softlayer import billing

NOW = datetime.now(UTC)
AHEAD = (NOW + timedelta(days=90)).isoformat()
ROW = {
    "id": 9,
    "description": "2 x P100",
    "hostName": "gpu-0",
    "categoryCode": "guest_core",
    "hourlyFlag": True,
    "createDate": "2026-11-21T08:00:00-06:00",
    "hourlyRecurringFee": 4.4,
    "currentHourlyCharge": "8.8",
    "children": [{"hourlyRecurringFee": ".5", "currentHourlyCharge": 1}],
}


def charge(**changes) -> Charge:
    return billing.charge({**ROW, **changes}, still_billed=changes.get("still_billed", False))


def test_a_charge_has_its_dates_in_utc_as_shown_to_people():
    ended = charge(cancellationDate="2026-11-21T09:30:00-06:00")
    assert f"{ended.opened:%H:%M} to {ended.closed:%H:%M} UTC" == "14:00 to 15:30 UTC"


def test_a_charge_is_its_fee_plus_its_children_where_they_are_dearer():
    assert (charge().per_hour, charge().so_far) == (Decimal("4.4"), Decimal("8.8"))
    children = [{"hourlyRecurringFee": 3}, {"hourlyRecurringFee": ".5"}]
    assert charge(hourlyRecurringFee=1, children=children).per_hour == Decimal("4.5")


def test_a_disk_counts_once_as_child_associated_disk_or_both():
    core, disk = {"id": 1, "hourlyRecurringFee": 3}, {"id": 2, "hourlyRecurringFee": ".56"}
    only_associated = charge(hourlyRecurringFee=3.9, children=[core], activeAssociatedGuestDiskBillingItems=[disk])
    both = charge(hourlyRecurringFee=4.46, children=[core, disk], activeAssociatedGuestDiskBillingItems=[disk])
    assert (only_associated.per_hour, both.per_hour) == (Decimal("4.46"), Decimal("4.46"))


@pytest.mark.parametrize(
    ("begun", "dollars"),
    [
        ("2026-11-21T08:02:45-06:00", "8.8"),  # A new item's own period begins when it is provisioned.
        ("2026-11-24T08:00:01-06:00", "330.0"),  # 8.80 and the 73 started hours before, which stand on an invoice.
    ],
)
def test_earlier_billing_periods_count_though_the_account_counts_the_running_one(begun, dollars):
    assert charge(cycleStartDate=begun).so_far == Decimal(dollars)


def test_a_part_that_came_later_has_cost_less_before():
    disk = {"hourlyRecurringFee": ".5", "currentHourlyCharge": 1, "createDate": "2026-11-24T07:00:00-06:00"}
    found = charge(cycleStartDate="2026-11-24T08:00:00-06:00", children=[disk])
    assert found.so_far == Decimal("8.8") + Decimal("3.9") * 72 + Decimal(".5")


@pytest.mark.parametrize(
    ("opened", "ended", "months"),
    [
        ("2026-01-31T08:00:00-06:00", "2026-01-31T09:00:00-06:00", 1),
        ("2026-01-31T08:00:00-06:00", "2026-02-28T07:59:00-06:00", 1),
        ("2026-01-31T08:00:00-06:00", "2026-02-28T14:01:00+00:00", 2),
        ("2025-11-30T08:00:00-06:00", "2026-03-30T08:00:00-06:00", 4),
        ("2026-02-28T08:00:00-06:00", "2099-01-01T00:00:00-06:00", None),
    ],
)
def test_a_monthly_item_costs_every_month_that_it_began(opened, ended, months):
    no_hours = {"hourlyRecurringFee": 0, "currentHourlyCharge": 0}
    monthly = {"hourlyFlag": False, "recurringFee": "98.55", "children": [{"recurringFee": "90", **no_hours}]}
    found = charge(createDate=opened, cancellationDate=ended, **monthly, **no_hours)
    assert found.per_hour == Decimal("0.1350")
    assert found.so_far == Decimal("98.55") * months if months else found.so_far < Decimal("98.55") * 600


@pytest.mark.parametrize(
    ("changes", "is_open", "has_end"),
    [
        ({}, True, False),
        ({"cancellationDate": AHEAD}, False, False),  # An hourly item ends with it, whatever our clock says.
        ({"cancellationDate": AHEAD, "hourlyFlag": False}, True, True),
        ({"cancellationDate": NOW.isoformat(), "still_billed": True}, True, True),
    ],
)
def test_an_item_is_open_until_the_account_has_ended_it(changes, is_open, has_end):
    found = charge(**changes)
    assert (found.is_open, found.ends is not None) == (is_open, has_end)


def test_a_receipt_counts_what_is_open_and_adds_everything_up():
    found = receipt([charge(), charge(cancellationDate=NOW.isoformat())])
    assert (found.open_count, found.total) == (1, Decimal("17.6"))
    assert receipt([]).total == 0
    lines = as_lines(receipt([charge(cancellationDate=NOW.isoformat())]), "1f3a9c42").splitlines()
    assert "gpu-0" in lines[1]
    assert lines[-1] == "open billing items with mark 1f3a9c42: 0; rented for 8.80 in all"
