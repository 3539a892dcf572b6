"""Every way to leave something billed shows in the account's list of billing items: open, or with an end that lies ahead."""

from collections.abc import Callable
from dataclasses import dataclass
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

    def volume(self, *, hourly: bool = True, datacenter: str = "lon04") -> int:
        return portal.order(self.account, portal.VOLUME, "a volume", datacenter, hourly=hourly).id

    def vlan(self, *, hourly: bool = True) -> int:
        return portal.order(self.account, portal.VLAN, "training", hourly=hourly).id

    def thing(self, item_id: int) -> int:
        return self.account.store.billing_items.read(item_id).resource_id

    def cancel(self, item_id: int, *, immediate: bool = True) -> None:
        self.call("Billing_Item", "cancelItem", immediate, True, "", "", identifier=item_id)

    def delete(self, guest_id: int) -> None:
        self.call("Virtual_Guest", "deleteObject", identifier=guest_id)
        self.later(30)

    def refused(self, act: Callable[[], Any]) -> None:
        """Somebody who does not look whether it worked."""
        with pytest.raises(Fault):
            act()


@dataclass(frozen=True)
class Leak:
    """Something that is left billed: what is done, and how many items of which categories it leaves."""

    left: list[str]
    happens: Callable[[Renter], Any]
    ahead: int = 0  # so many of the items have an end that lies ahead


def hidden_from_its_owner(renter: Renter) -> None:
    guest_id = renter.guest()
    renter.call("Virtual_Guest", "editObject", {"hostname": "other", "domain": "example.com"}, identifier=guest_id)


def lost_reply(renter: Renter) -> None:
    renter.script("Virtual_Guest::createObject", "lost_reply")
    renter.reply("Virtual_Guest", "createObject", template("gpu-0"))


def cancelled_later(renter: Renter) -> None:
    renter.cancel(renter.item(renter.guest(hourlyBillingFlag=False)), immediate=False)


def inhabited_vlan(renter: Renter) -> None:
    item_id = renter.vlan()
    vlan = {"primaryBackendNetworkComponent": {"networkVlan": {"id": renter.thing(item_id)}}}
    guest_id = renter.guest(**vlan)
    renter.refused(lambda: renter.cancel(item_id))
    renter.delete(guest_id)


GUEST, VOLUME, VLAN = ["guest_core"], ["storage_as_a_service"], ["network_vlan"]
LEAKS = {
    "a guest that nobody cancels": Leak(GUEST, lambda renter: renter.guest()),
    "a guest that is still being built": Leak(GUEST, lambda renter: renter.order()),
    "a guest whose order got no answer": Leak(GUEST, lost_reply),
    "two guests of one name": Leak(GUEST * 2, lambda renter: (renter.order(), renter.order())),
    "a guest that was renamed": Leak(GUEST, hidden_from_its_owner),
    "a guest whose cancellation came too early": Leak(
        GUEST, lambda renter: renter.refused(lambda: renter.delete(renter.order()))
    ),
    "a monthly guest": Leak(GUEST, lambda renter: renter.guest(hourlyBillingFlag=False)),
    "a monthly guest cancelled on its anniversary": Leak(GUEST, cancelled_later, ahead=1),
    "one of two guests": Leak(GUEST, lambda renter: (renter.guest("gpu-1"), renter.delete(renter.guest()))),
    "a volume": Leak(VOLUME, lambda renter: renter.volume()),
    "a monthly volume": Leak(VOLUME, lambda renter: renter.volume(hourly=False)),
    "a volume cancelled on its anniversary": Leak(
        VOLUME, lambda renter: renter.cancel(renter.volume(hourly=False), immediate=False), ahead=1
    ),
    "a volume in another datacenter": Leak(VOLUME, lambda renter: renter.volume(datacenter="dal13")),
    "a VLAN": Leak(VLAN, lambda renter: renter.vlan()),
    "a VLAN that could not be cancelled while inhabited": Leak(VLAN, inhabited_vlan),
    "a VLAN cancelled on its anniversary": Leak(
        VLAN, lambda renter: renter.cancel(renter.vlan(hourly=False), immediate=False), ahead=1
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_is_left_is_in_the_list_of_billing_items_with_its_price(tmp_path: Path, name):
    leak = LEAKS[name]
    renter = Renter(tmp_path)
    leak.happens(renter)
    billed = still_billed(renter)
    assert sorted(each["categoryCode"] for each in billed) == leak.left
    assert all(each["recurringFee"] > 0 for each in billed)
    assert all((each["hourlyRecurringFee"] > 0) == each["hourlyFlag"] for each in billed)
    assert sum(each["cancellationDate"] is not None for each in billed) == leak.ahead


@pytest.mark.parametrize("name", [name for name, leak in LEAKS.items() if not leak.ahead])
def test_what_is_found_in_the_list_can_be_ended_from_the_list(tmp_path, name):
    renter = Renter(tmp_path)
    LEAKS[name].happens(renter)
    for item in still_billed(renter):
        renter.later(60)
        renter.cancel(item["id"])
    assert still_billed(renter) == []


@pytest.mark.parametrize("name", [name for name, leak in LEAKS.items() if leak.ahead])
def test_what_ends_later_is_billed_until_then_and_closed_by_the_clock_alone(tmp_path, name):
    renter = Renter(tmp_path)
    LEAKS[name].happens(renter)
    renter.later(20 * DAY)
    assert len(still_billed(renter)) == 1
    renter.later(12 * DAY)
    assert still_billed(renter) == []


def still_billed(renter: Renter) -> list[dict[str, Any]]:
    """What costs money, as a careful reader of the list sees it."""
    items = renter.call("Account", "getAllTopLevelBillingItems", mask=MASK)
    return [each for each in items if ends_after(each["cancellationDate"], renter.account.now)]


def ends_after(date: str | None, now: float) -> bool:
    return date is None or datetime.fromisoformat(date).timestamp() > now
