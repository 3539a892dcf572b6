"""SoftLayer_Virtual_Guest::getCreateObjectOptions: the older view of everything a create template may hold."""

from __future__ import annotations

from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.objects import goods


def get_create_options(account: Account, call: Call) -> dict[str, Any]:
    """The older view of everything that can be put into a create template."""
    catalog = account.catalog
    flavors = [
        {
            "flavor": goods.preset(account, each),
            "template": {"id": "", "supplementalCreateObjectOptions": {"flavorKeyName": each.key_name}},
        }
        for each in catalog.flavors
    ]
    systems = [
        {
            "itemPrice": goods.price(account, each.price),
            "template": {"operatingSystemReferenceCode": code},
        }
        for each in catalog.systems
        for code in each.codes
    ]
    disks = [
        {
            "itemPrice": goods.price(account, price),
            "template": {
                "blockDevices": [{"device": str(position), "diskImage": {"capacity": price.capacity}}],
                "localDiskFlag": False,
            },
        }
        for position in range(2, 6)
        for price in catalog.disks.values()
        if price.category.code == f"guest_disk{position - 1}"
    ]
    speeds = [
        {
            "itemPrice": goods.price(account, price),
            "template": {"networkComponents": [{"maxSpeed": price.capacity}], "privateNetworkOnlyFlag": private},
        }
        for (_, private), price in catalog.port_speeds.items()
    ]
    return {
        "flavors": flavors,
        "operatingSystems": systems,
        "blockDevices": disks,
        "networkComponents": speeds,
        "datacenters": [{"template": {"datacenter": {"name": each.name}}} for each in goods.sold_in(account)],
        "processors": [],
        "memory": [],
    }
