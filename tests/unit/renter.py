"""Somebody who rents things of every kind in an emulated account, and ends them or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emulator import transactions
from emulator.faults import Fault
from tests.unit.emulated import Emulated

LONDON, DALLAS = "1510121", "1854895"
ORDER = "SoftLayer_Container_Product_Order"
BLOCK, FILE = [189433, 189443, 193313, 193323], [189433, 189453, 193313, 193323]


class Renter(Emulated):
    """One account, with an order of each kind and a clock that goes on."""

    def guest(self, hostname: str = "gpu-0", **changes: Any) -> int:
        guest_id = self.order(hostname, **changes)
        self.later(30)
        return guest_id

    def place(self, kind: str, **container: Any) -> int:
        """Order anything else, and return its billing item."""
        known = set(self.account.store.billing_items)
        self.call("Product_Order", "placeOrder", {"complexType": f"{ORDER}_{kind}", "quantity": 1, **container})
        (item_id,) = set(self.account.store.billing_items) - known
        return item_id

    def volume(self, prices: list[int] = BLOCK, *, hourly: bool = True, location: str = LONDON) -> int:
        item_id = self.place(
            "Network_Storage_AsAService",
            packageId=759,
            prices=[{"id": each} for each in prices],
            location=location,
            useHourlyPricing=hourly,
            volumeSize=100,
            osFormatType={"keyName": "LINUX"},
        )
        self.later(30)
        return item_id

    def vlan(self, *, hourly: bool = True) -> int:
        vlan = {"packageId": 571, "prices": [{"id": 203719}], "location": LONDON, "routerId": 7002}
        return self.place("Network_Vlan", **vlan, useHourlyPricing=hourly)

    def disk(self, *, hourly: bool = True) -> int:
        disk = {"packageId": 198, "prices": [{"id": 20110}], "location": LONDON, "diskDescription": "a disk"}
        return self.place("Virtual_Disk_Image", **disk, useHourlyPricing=hourly)

    def thing(self, item_id: int) -> int:
        return self.account.store.billing_items.peek(item_id).resource_id

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
