"""What the invoices of the emulated account hold, and that they add up to its bill."""

import itertools
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.softlayer import billing, cancellation, guests, invoices, portal, transactions
from emulator.softlayer.account import Account
from emulator.softlayer.billing import CENT
from emulator.softlayer.catalog import load_catalog
from emulator.softlayer.create_template import read_template
from emulator.softlayer.dates import iso
from emulator.softlayer.records import BillingItem, Fee
from emulator.store import Table
from providers.softlayer import billing as charges
from tests.unit.emulated import Emulated, template

HOUR = 3600.0
DAY = 24 * HOUR
START = 1_767_225_600.0  # 2026-01-01


@dataclass
class Ledger:
    """No more of an account than invoices read."""

    store: SimpleNamespace
    now: float


def ledger(items: list[BillingItem], now: float) -> Ledger:
    table: Table[BillingItem] = Table()
    for item in items:
        table[item.id] = item
    return Ledger(SimpleNamespace(billing_items=table, facts={billing.BILLED_SINCE: repr(START)}), now)


moments = st.floats(0, 120 * DAY).map(lambda late: START + late)
fees_per_hour = st.sampled_from(["0", "0.02", "0.0057", "0.342", "1.425", "2.427", "0.56"])


@st.composite
def billing_items(draw: st.DrawFn, number: int) -> BillingItem:
    opened, length = draw(moments), draw(st.floats(0, 90 * DAY))
    closed = draw(st.sampled_from([None, opened + length]))
    fees = [Fee(100 * number, "guest_core", "cores", draw(fees_per_hour), opened, closed)]
    for each in range(draw(st.integers(0, 4))):
        fees.append(Fee(100 * number + 1 + each, "guest_disk1", "a disk", draw(fees_per_hour), opened, closed))
    hourly = draw(st.booleans())
    return BillingItem(number, 9, 8, 7, "gpu-0", "a.example", "lon04", "", hourly, opened, fees, closed)


accounts = st.integers(0, 6).flatmap(
    lambda count: st.tuples(*(billing_items(number) for number in range(1, count + 1)))
)


@given(accounts, moments)
def test_the_lines_of_an_invoice_add_up_to_its_items_and_these_to_the_bill(items, at):
    account = ledger(list(items), at)
    record = invoices.invoice(account, invoices.BEGINNING, at)
    lines = [line.amount for entry in record.entries for line in entry.lines]
    assert sum(lines, Decimal()) == record.total
    assert record.total.quantize(CENT) == billing.bill(account, at)


@given(accounts, st.lists(moments, min_size=2, max_size=8))
def test_the_invoices_of_a_split_period_are_together_the_invoice_of_the_whole(items, cuts):
    account, cuts = ledger(list(items), max(cuts)), sorted(cuts)
    parts = [invoices.invoice(account, start, end).total for start, end in itertools.pairwise(cuts)]
    assert sum(parts, Decimal()) == invoices.invoice(account, cuts[0], cuts[-1]).total


@given(accounts, moments, moments)
def test_what_was_charged_never_becomes_less(items, one, other):
    account = ledger(list(items), START)
    assert billing.bill(account, min(one, other)) <= billing.bill(account, max(one, other))


@pytest.fixture
def emulated(tmp_path: Path) -> Emulated:
    return Emulated(tmp_path)


def later(emulated: Emulated, seconds: float) -> None:
    emulated.account.clock.step(seconds)
    transactions.advance(emulated.account)


def test_an_item_counts_the_hours_of_the_running_billing_period_and_not_those_that_were_invoiced(emulated):
    guest_id = emulated.order("hourly")
    later(emulated, 40 * DAY + HOUR / 2)
    item = emulated.call("Virtual_Guest", "getBillingItem", identifier=guest_id)
    assert int(item["hoursUsed"]) == 9 * 24 + 1
    assert item["currentHourlyCharge"] == pytest.approx(4.496 * (9 * 24 + 1))
    assert (item["createDate"][:10], item["cycleStartDate"][:10]) == ("2025-12-31", "2026-01-31")


@pytest.mark.parametrize("days", [0, 0.3, 30.99, 31, 31.5, 62, 100])
def test_the_provider_reads_the_whole_charge_of_a_machine_whatever_billing_days_it_has_seen(emulated, days):
    guest_id = emulated.order("hourly")
    later(emulated, days / 2 * DAY)
    later(emulated, days / 2 * DAY)
    item_id = emulated.call("Virtual_Guest", "getBillingItem", identifier=guest_id)["id"]
    row = emulated.call("Billing_Item", "getObject", identifier=item_id, mask=charges.CHARGE_MASK)
    assert charges.charge(row, still_billed=True).so_far.quantize(CENT) == billing.bill(emulated.account)


@pytest.mark.parametrize("flavor", [each.key_name for each in load_catalog().flavors if "lon04" in each.sold_in])
@pytest.mark.parametrize("hourly", [True, False])
def test_an_order_costs_what_its_item_is_billed_to_the_cent(emulated, flavor, hourly):
    preset = {"supplementalCreateObjectOptions": {"flavorKeyName": flavor}, "blockDevices": []}
    emulated.order(**preset, hourlyBillingFlag=hourly)
    (order,) = emulated.account.store.orders.read_all()
    assert billing.bill(emulated.account) == Decimal(order.total).quantize(CENT)


def test_a_report_of_the_past_shows_the_bill_as_it_was(emulated):
    guest_id = emulated.ready()
    middle = emulated.account.now
    then = invoices.report(emulated.account, None)
    later(emulated, 5 * HOUR)
    emulated.call("Virtual_Guest", "deleteObject", identifier=guest_id)
    again = invoices.report(emulated.account, iso(middle))
    assert again["bill"] == then["bill"] == "4.50"
    assert (again["items"][0]["state"], again["items"][0]["closed"]) == ("open", None)
    now = invoices.report(emulated.account, None)
    assert now["bill"] == "26.98"
    assert now["items"][0]["state"].startswith("closed")
    assert "26.98" in invoices.as_text(now)


@pytest.mark.parametrize(("at", "words"), [("soon", "is not a date"), ("2030-01-01", "not known yet")])
def test_a_report_for_a_moment_that_cannot_be_is_a_sentence(emulated, at, words):
    with pytest.raises(invoices.MomentError, match=words):
        invoices.report(emulated.account, at)


def lived(emulated: Emulated, *, guests_per_hour: int, hours: int) -> Decimal:
    """Cancel each guest after six hours, and let a volume take another's place every sixth hour; return the bill at the end."""
    account, living = emulated.account, []
    for hour in range(hours):
        account.clock.step(HOUR)
        transactions.advance(account)
        rented = [guest(account, f"gpu-{hour}-{number}") for number in range(guests_per_hour)]
        volumes = [portal.order(account, portal.VOLUME) for _ in range(guests_per_hour) if hour % 6 == 0]
        living.append(rented + volumes)
        for item in living.pop(0) if len(living) > 6 else []:
            cancellation.cancel(account, item, immediate=True)
        account.store.flush()
        if hour % 24 == 0:
            billing.bill(account)
    return invoices.invoice(account, invoices.BEGINNING, account.now).total


def guest(account: Account, hostname: str) -> BillingItem:
    _, (made,) = guests.place(account, [read_template(account, template(hostname))])
    return account.store.billing_items[made.billing_item_id]


def test_a_month_of_billing_adds_up_and_takes_work_in_proportion_to_what_was_rented(tmp_path, monkeypatch):
    charges = Counter()
    count = billing.charged_for

    def counted(fee: Fee, item: BillingItem, until: float) -> Decimal:
        charges[rate] += 1
        return count(fee, item, until)

    monkeypatch.setattr(billing, "charged_for", counted)
    for rate in (1, 3):
        subnets = {"public_subnet": "198.18.0.0/16", "private_subnets": ("10.112.0.0/16", "10.113.0.0/16")}
        times = {"provisioning_s": 600.0, "reclaim_s": 600.0}
        total = lived(Emulated(tmp_path / str(rate), **subnets, **times), guests_per_hour=rate, hours=60)
        # 54 guests lived for six hours, the last six for five hours and less, each started one counted; and ten volumes.
        guest_hours, volumes = 54 * 6 + 5 + 4 + 3 + 2 + 1 + 1, 9 * 6 + 5
        assert total == rate * (guest_hours * Decimal("4.496") + volumes * Decimal("0.03"))
    assert charges[3] == 3 * charges[1]
