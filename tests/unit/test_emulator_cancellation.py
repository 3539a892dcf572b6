"""End of billing items: at once, on the anniversary, never twice."""

from pathlib import Path
from typing import Any

import pytest

from emulator.softlayer import transactions
from emulator.softlayer.billing import bill
from emulator.softlayer.dates import iso
from emulator.softlayer.faults import Fault
from tests.unit.emulated import Emulated

HOUR = 3600.0
DAY = 24 * HOUR
BILL = "id,cancellationDate,recurringFee,children[id,cancellationDate]"


@pytest.fixture
def emulated(tmp_path: Path) -> Emulated:
    return Emulated(tmp_path)


def guest(emulated: Emulated, **changes: Any) -> tuple[int, int]:
    """Order a guest, wait for it, and return its id and its billing item's."""
    guest_id = emulated.order(**changes)
    emulated.later(60)
    return guest_id, emulated.item(guest_id)


def read(emulated: Emulated, item_id: int) -> dict[str, Any]:
    return emulated.call("Billing_Item", "getObject", identifier=item_id, mask=BILL)


def test_an_hourly_guest_ends_at_once_even_if_the_anniversary_is_wanted(emulated):
    guest_id, item_id = guest(emulated)
    assert emulated.call("Billing_Item", "cancelItem", False, True, "done", "", identifier=item_id) is True
    after = emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask="id,billingItem,activeTransaction")
    assert "billingItem" not in after
    assert after["activeTransaction"]
    ended = read(emulated, item_id)
    assert ended["cancellationDate"]
    assert {each["cancellationDate"] for each in ended["children"]} == {ended["cancellationDate"]}


def test_a_monthly_guest_is_usable_and_billed_until_its_anniversary(emulated):
    guest_id, item_id = guest(emulated, hourlyBillingFlag=False)
    emulated.call("Billing_Item", "cancelItem", False, True, identifier=item_id)
    shown = emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask=f"provisionDate,billingItem[{BILL}]")
    assert shown["billingItem"]["cancellationDate"].startswith("2026-01-31")
    assert {each["cancellationDate"][:10] for each in shown["billingItem"]["children"]} == {"2026-01-31"}
    emulated.later(30 * DAY)
    emulated.call("Virtual_Guest", "rebootDefault", identifier=guest_id)
    paid = bill(emulated.account)
    emulated.later(2 * DAY)
    assert guest_id not in [each["id"] for each in emulated.call("Account", "getVirtualGuests")]
    assert bill(emulated.account) == paid


@pytest.mark.parametrize("hourly", [True, False])
@pytest.mark.parametrize("again", ["cancelItem", "cancelService", "deleteObject"])
def test_a_second_cancellation_is_refused_and_changes_nothing(emulated, hourly, again):
    guest_id, item_id = guest(emulated, hourlyBillingFlag=hourly)
    emulated.call("Billing_Item", "cancelItem", False, True, identifier=item_id)
    before = read(emulated, item_id)
    service, number = ("Virtual_Guest", guest_id) if again == "deleteObject" else ("Billing_Item", item_id)
    with pytest.raises(Fault, match=f"{number if hourly else item_id} is already cancelled"):
        emulated.call(service, again, True, identifier=number)
    assert read(emulated, item_id) == before


@pytest.mark.parametrize("immediate", [True, False])
def test_what_is_in_a_transaction_cannot_be_cancelled(emulated, immediate):
    guest_id = emulated.order()
    item_id = emulated.item(guest_id)
    with pytest.raises(Fault, match="transaction"):
        emulated.call("Billing_Item", "cancelItem", immediate, True, identifier=item_id)
    assert read(emulated, item_id)["cancellationDate"] is None


def test_a_transaction_on_the_anniversary_holds_the_guest_but_not_its_charge(emulated):
    guest_id, item_id = guest(emulated, hourlyBillingFlag=False)
    emulated.call("Billing_Item", "cancelItem", False, True, identifier=item_id)
    paid, ends = bill(emulated.account), emulated.account.store.billing_items.read(item_id).ends
    emulated.later(ends - emulated.account.now - 3)
    transactions.begin(emulated.account, emulated.account.store.guests[guest_id], transactions.SETUP, 30.0)
    emulated.account.store.flush()
    emulated.account.clock.step(2.0)  # past the anniversary
    assert "billingItem" in emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask="id,billingItem")
    emulated.later(60)
    assert read(emulated, item_id)["cancellationDate"] == iso(ends)
    assert bill(emulated.account) == paid
