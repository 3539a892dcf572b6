"""A preview's price against the invoice of the same rental, in virtual time."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from microcluster.core.catalog.billing_rules import Part, Prices, Rate, dollars
from tests.unit.priced_rentals import EACH, Rental, rentals


@pytest.fixture(scope="module")
def rented(tmp_path_factory: pytest.TempPathFactory) -> list[Rental]:
    return list(rentals(Path(tmp_path_factory.mktemp("rentals"))))


def test_previews_of_200_random_stacks_are_within_one_percent_of_the_invoices(rented) -> None:
    assert Counter(each.section.account for each in rented) == {"softlayer": EACH, "paperspace": EACH}
    assert [each for each in rented if each.off > Decimal("0.01")] == []


def test_random_stacks_include_first_hours_monthly_limits_and_every_port_and_address(rented) -> None:
    assert sum(each.hours < 1 for each in rented) > 10
    assert sum(each.hours > 800 for each in rented if each.section.account == "paperspace") > 5
    assert {each.section.port_speed_mbps for each in rented if each.section.account == "softlayer"} == {10, 100, 1000}
    assert {each.section.public_ip for each in rented if each.section.account == "paperspace"} == {"static", "dynamic"}


START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rate", "hours", "cost"),
    [
        (Rate(Decimal(2)), 0, "2"),
        (Rate(Decimal(2)), 1.01, "4"),
        (Rate(Decimal("0.01"), Decimal(7), by_month=True), 31 * 24, "7"),
        (Rate(Decimal("0.01"), Decimal(7), by_month=True), 32 * 24, "7.24"),
    ],
)
def test_a_started_hour_counts_whole_and_a_month_has_its_limit(rate: Rate, hours: float, cost: str) -> None:
    assert rate.cost(START, START + timedelta(hours=hours)) == Decimal(cost)


def test_the_accounts_total_price_is_shared_out_as_in_the_catalog() -> None:
    listed = Prices((Part("gpu-0", "a", Rate(Decimal(3))), Part("gpu-1", "b", Rate(Decimal(1)))), "catalog")
    asked = listed.at(Decimal(8), "account")
    assert [part.rate.per_hour for part in asked.parts] == [6, 2]
    assert asked.lines()[-2:] == ["together: $8.00 an hour, nothing by the month", "source: account"]


@pytest.mark.parametrize(("amount", "text"), [("13", "$13.00"), ("0.0015", "$0.0015"), ("4.496", "$4.496")])
def test_a_price_has_the_digits_that_it_needs(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text
