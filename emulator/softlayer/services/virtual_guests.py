"""SoftLayer_Virtual_Guest: ordering, reading and cancelling guests."""

from typing import Any

from emulator.softlayer import guests as life
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.create_template import read_template
from emulator.softlayer.objects import bills, guests
from emulator.softlayer.order_container import write_container
from emulator.softlayer.services import guest_changes
from emulator.softlayer.services.finding import find_guest
from emulator.softlayer.views import MISSING, View


def create(account: Account, call: Call) -> View:
    """Order one guest."""
    _, made = life.place(account, [read_template(account, call.argument(0))])
    return guests.created(account, made[0])


def create_many(account: Account, call: Call) -> list[View]:
    """Order several guests, all or none."""
    _, made = life.place(account, [read_template(account, each) for each in call.argument(0)])
    return [guests.created(account, each) for each in made]


def generate_order_template(account: Account, call: Call) -> dict[str, Any]:
    """The order container for a create template; nothing is ordered."""
    return write_container(account, read_template(account, call.argument(0)))


def get(account: Account, call: Call) -> View:
    """A guest."""
    return guests.guest(account, find_guest(account, call))


def delete(account: Account, call: Call) -> bool:
    """Cancel a guest at once."""
    life.cancel(account, find_guest(account, call))
    return True


def get_billing_item(account: Account, call: Call) -> View | None:
    """What a guest costs; nothing once it is cancelled."""
    return bills.of_guest(account, find_guest(account, call))


def property_of(name: str) -> Any:
    """The getter of one property, as every object has one."""

    def getter(account: Account, call: Call) -> Any:
        value = get(account, call).read(name)
        return None if value is MISSING else value

    getter.__doc__ = f"The property {name} of a guest."
    return getter


def answer(value: Any) -> Any:
    """An answer that is the same for every guest."""

    def getter(account: Account, call: Call) -> Any:
        find_guest(account, call)
        return value

    getter.__doc__ = f"Always {value} for a guest that is there."
    return getter


SERVICES = {
    "SoftLayer_Virtual_Guest": {
        **guest_changes.METHODS,
        "createObject": create,
        "createObjects": create_many,
        "generateOrderTemplate": generate_order_template,
        "getObject": get,
        "deleteObject": delete,
        "getBillingItem": get_billing_item,
        "getBlockDevices": property_of("blockDevices"),
        "getActiveTransaction": property_of("activeTransaction"),
        "getActiveTransactions": property_of("activeTransactions"),
        "getNetworkComponents": property_of("networkComponents"),
        "getPrimaryNetworkComponent": property_of("primaryNetworkComponent"),
        "getPrimaryBackendNetworkComponent": property_of("primaryBackendNetworkComponent"),
        "getPrimaryIpAddress": property_of("primaryIpAddress"),
        "getPrimaryBackendIpAddress": property_of("primaryBackendIpAddress"),
        "getDatacenter": property_of("datacenter"),
        "getOperatingSystem": property_of("operatingSystem"),
        "getTagReferences": property_of("tagReferences"),
        "getNetworkVlans": property_of("networkVlans"),
        "getAttachedNetworkStorages": answer([]),
        "getAllowedHost": answer(None),
        "getBandwidthAllotmentDetail": answer(None),
        "getBillingCycleBandwidthUsage": answer([]),
        "getReverseDomainRecords": answer([]),
        "isCloudInit": answer(True),
    },
}
