"""Somebody who rents things of every kind in an emulated account, and ends them or not."""

from collections.abc import Callable
from typing import Any

import pytest

from emulator.softlayer import portal, transactions
from emulator.softlayer.faults import Fault
from tests.unit.emulated import Emulated


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

    def item(self, guest_id: int) -> int:
        return self.call("Virtual_Guest", "getBillingItem", identifier=guest_id)["id"]

    def cancel(self, item_id: int, *, immediate: bool = True) -> None:
        self.call("Billing_Item", "cancelItem", immediate, True, "", "", identifier=item_id)

    def delete(self, guest_id: int) -> None:
        self.call("Virtual_Guest", "deleteObject", identifier=guest_id)
        self.later(30)

    def later(self, seconds: float) -> None:
        self.account.clock.step(seconds)
        while transactions.advance(self.account):
            self.account.clock.step(20)

    def refused(self, act: Callable[[], Any]) -> None:
        """Somebody who does not look whether it worked."""
        with pytest.raises(Fault):
            act()
