"""Invoices of the emulated account: their lines, and that they add up to its bill."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.shared.settings import UsageError
from emulator.softlayer import billing, invoices, transactions
from emulator.softlayer.billing import CENT
from emulator.softlayer.catalog import load_catalog
from emulator.softlayer.dates import iso
from emulator.softlayer.records import BillingItem, Fee
from microcluster.accounts.softlayer import billing as charges
from tests.unit.emulated import Emulated, template

HOUR = 3600.0
DAY = 24 * HOUR
START = 1_767_225_600.0  # 2026-01-01


def moments(first_day: int, last_day: int) -> st.SearchStrategy[float]:
    return st.floats(START + first_day * DAY, START + last_day * DAY)


fees = st.sampled_from(["0", "0.02", "0.0057", "0.342", "1.425", "2.427", "0.56"]).map(
    lambda fee: Fee(1, "guest_core", "a part", fee)
)


items = st.builds(
    BillingItem,
    *map(st.just, (1, 9, 7)),
    hourly=st.booleans(),
    opened=moments(0, 120),
    fees=st.lists(fees, min_size=1, max_size=5),
    closed=st.none() | moments(120, 240),
)


@given(items, moments(0, 360), moments(0, 360))
def test_what_was_charged_never_becomes_less(item, one, other):
    assert billing.charged(item, min(one, other)) <= billing.charged(item, max(one, other))


@pytest.fixture
def emulated(tmp_path: Path) -> Emulated:
    return Emulated(tmp_path)


def later(emulated: Emulated, seconds: float) -> None:
    emulated.account.clock.step(seconds)
    transactions.advance(emulated.account)


def test_an_item_counts_hours_of_the_running_period_without_invoiced_ones(emulated):
    guest_id = emulated.order("hourly")
    later(emulated, 40 * DAY + HOUR / 2)
    item = emulated.call("Billing_Item", "getObject", identifier=emulated.item(guest_id))
    assert int(item["hoursUsed"]) == 9 * 24 + 1
    assert item["currentHourlyCharge"] == pytest.approx(4.496 * (9 * 24 + 1))
    assert (item["createDate"][:10], item["cycleStartDate"][:10]) == ("2025-12-31", "2026-01-31")


def test_the_next_invoice_has_what_was_charged_since_the_last_billing_day(emulated):
    monthly = emulated.order("monthly", hourlyBillingFlag=False)
    ended = emulated.ready("ended")
    later(emulated, 10 * DAY)
    emulated.call("Virtual_Guest", "deleteObject", identifier=ended)
    bill = billing.bill(emulated.account)
    assert emulated.call("Account", "getObject", mask="nextInvoiceTotalAmount")["nextInvoiceTotalAmount"] == str(bill)
    later(emulated, 30 * DAY)
    item = emulated.call("Billing_Item", "getObject", identifier=emulated.item(monthly))
    assert billing.due_next(emulated.account) == Decimal(str(item["recurringFee"]))


@pytest.mark.parametrize("days", [0, 0.3, 30.99, 31, 31.5, 62, 100])
def test_the_provider_reads_a_machines_whole_charge_across_billing_days(emulated, days):
    guest_id = emulated.order("hourly")
    later(emulated, days / 2 * DAY)
    later(emulated, days / 2 * DAY)
    row = emulated.call("Billing_Item", "getObject", identifier=emulated.item(guest_id), mask=charges.CHARGE_MASK)
    assert charges.charge(row, still_billed=True).so_far.quantize(CENT) == billing.bill(emulated.account)


@pytest.mark.parametrize("flavor", [each.key_name for each in load_catalog().flavors if "lon04" in each.sold_in])
@pytest.mark.parametrize("hourly", [True, False])
def test_an_order_costs_what_its_item_is_billed_to_the_cent(emulated, flavor, hourly):
    preset = {"supplementalCreateObjectOptions": {"flavorKeyName": flavor}, "blockDevices": []}
    wanted = template() | preset | {"hourlyBillingFlag": hourly}
    order = emulated.call("Virtual_Guest", "generateOrderTemplate", wanted)
    sums = emulated.call("Product_Order", "verifyOrder", order)
    emulated.call("Product_Order", "placeOrder", order)
    total = sums["postTaxRecurringHourly" if hourly else "postTaxRecurringMonthly"]
    assert billing.bill(emulated.account) == Decimal(total).quantize(CENT)


def test_a_report_of_the_past_shows_the_bill_as_it_was(emulated):
    guest_id = emulated.ready()
    middle = emulated.account.now
    then = invoices.report(emulated.account, None)
    later(emulated, 5 * HOUR)
    emulated.call("Virtual_Guest", "deleteObject", identifier=guest_id)
    again = invoices.report(emulated.account, iso(middle))
    assert again["bill"] == then["bill"] == "4.50"
    assert again["items"][0]["state"] == "open"
    now = invoices.report(emulated.account, None)
    assert now["bill"] == "26.98"
    assert now["items"][0]["state"].startswith("closed")
    assert "26.98" in invoices.as_text(now)


@pytest.mark.parametrize(("at", "words"), [("soon", "is not a date"), ("2030-01-01", "not known yet")])
def test_a_report_for_a_moment_that_cannot_be_is_a_sentence(emulated, at, words):
    with pytest.raises(UsageError, match=words):
        invoices.report(emulated.account, at)
