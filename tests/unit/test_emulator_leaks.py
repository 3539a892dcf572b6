"""Every way to leave something billed shows in the account's list of billing items: open, or with an end that lies ahead."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from emulator.softlayer import portal
from emulator.softlayer.faults import Fault
from tests.unit.emulated import Emulated, template

DAY = 24 * 3600.0
MASK = "mask[id,hostName,categoryCode,cancellationDate,hourlyFlag,hourlyRecurringFee,recurringFee]"


class Renter(Emulated):
    """One account, with an order of each kind and a clock that goes on."""

    def guest(self, hostname: str = "gpu-0", **changes: Any) -> int:
        guest_id = self.order(hostname, **changes)
        self.later(30)
        return guest_id

    def cancel(self, item_id: int, *, immediate: bool = True) -> None:
        self.call("Billing_Item", "cancelItem", immediate, True, "", "", identifier=item_id)

    def billed(self) -> list[dict[str, Any]]:
        """Resources that cost money, as a careful reader of the list sees them."""
        items = self.call("Account", "getAllTopLevelBillingItems", mask=MASK)
        return [each for each in items if self.is_ahead(each["cancellationDate"])]

    def is_ahead(self, date: str | None) -> bool:
        return date is None or datetime.fromisoformat(date).timestamp() > self.account.now


def renamed(renter: Renter) -> None:
    renamed = {"hostname": "other", "domain": "example.com"}
    renter.call("Virtual_Guest", "editObject", renamed, identifier=renter.guest())


def lost_reply(renter: Renter) -> None:
    renter.script("Virtual_Guest::createObject", "lost_reply")
    renter.reply("Virtual_Guest", "createObject", template("gpu-0"))


def cancelled_too_early(renter: Renter) -> None:
    with pytest.raises(Fault):
        renter.call("Virtual_Guest", "deleteObject", identifier=renter.order())


def monthly_guest_cancelled_later(renter: Renter) -> None:
    renter.cancel(renter.item(renter.guest(hourlyBillingFlag=False)), immediate=False)


def cancelled_later(kind: Any) -> Callable[[Renter], None]:
    return lambda renter: renter.cancel(portal.order(renter.account, kind, hourly=False).id, immediate=False)


def inhabited_vlan(renter: Renter) -> None:
    item = portal.order(renter.account, portal.VLAN)
    guest_id = renter.guest(primaryBackendNetworkComponent={"networkVlan": {"id": item.resource_id}})
    with pytest.raises(Fault):
        renter.cancel(item.id)
    renter.call("Virtual_Guest", "deleteObject", identifier=guest_id)
    renter.later(30)


GUEST, VOLUME, VLAN = "guest_core", "storage_as_a_service", "network_vlan"
LEAKS = {
    renamed: [GUEST],
    lost_reply: [GUEST],
    cancelled_too_early: [GUEST],
    lambda renter: (renter.order(), renter.order()): [GUEST] * 2,
    lambda renter: portal.order(renter.account, portal.VOLUME, datacenter="dal13", hourly=False): [VOLUME],
    inhabited_vlan: [VLAN],
}
ENDING_LATER = {
    monthly_guest_cancelled_later: [GUEST],
    cancelled_later(portal.VOLUME): [VOLUME],
    cancelled_later(portal.VLAN): [VLAN],
}


@pytest.mark.parametrize(("happens", "left"), [*LEAKS.items(), *ENDING_LATER.items()])
def test_leftovers_are_in_the_list_of_billing_items_with_their_price(tmp_path: Path, happens, left):
    renter = Renter(tmp_path)
    happens(renter)
    billed = renter.billed()
    assert sorted(each["categoryCode"] for each in billed) == left
    assert all(each["recurringFee"] > 0 for each in billed)
    assert all((each["hourlyRecurringFee"] > 0) == each["hourlyFlag"] for each in billed)
    assert all((each["cancellationDate"] is not None) == (happens in ENDING_LATER) for each in billed)


@pytest.mark.parametrize("happens", LEAKS)
def test_what_is_found_in_the_list_can_be_ended_from_the_list(tmp_path, happens):
    renter = Renter(tmp_path)
    happens(renter)
    for item in renter.billed():
        renter.later(60)
        renter.cancel(item["id"])
    assert renter.billed() == []


@pytest.mark.parametrize("happens", ENDING_LATER)
def test_items_that_end_later_are_billed_until_then_and_close_themselves(tmp_path, happens):
    renter = Renter(tmp_path)
    happens(renter)
    renter.later(20 * DAY)
    assert len(renter.billed()) == 1
    renter.later(12 * DAY)
    assert renter.billed() == []
