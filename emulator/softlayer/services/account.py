"""What the account has and what it costs: its lists, billing items, orders, networks and images."""

from dataclasses import replace

from emulator.softlayer import cancellation, users
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.create_template import find_image
from emulator.softlayer.faults import public
from emulator.softlayer.objects import bills, offered, owned
from emulator.softlayer.records import BillingItem
from emulator.softlayer.services.finding import find, identifier
from emulator.softlayer.views import Listing, View


def get_object(account: Account, call: Call) -> View:
    """The account itself."""
    settings = account.settings
    return View(
        {
            "id": account.id,
            "companyName": settings.company,
            "firstName": settings.username,
            "lastName": "",
            "email": f"{settings.username}@example.com",
            "brandId": 2,
            "accountStatusId": 1001,
            "isReseller": 0,
            "statusDate": None,
        }
    )


def get_virtual_guests(account: Account, call: Call) -> Listing:
    """Every guest, also those that are being reclaimed."""
    every = sorted(account.store.guests.items())
    return Listing([owned.guest(account, guest) for _, guest in every], "virtualGuests")


def get_ssh_keys(account: Account, call: Call) -> Listing:
    """Every SSH key."""
    return Listing([owned.ssh_key(each) for each in account.store.ssh_keys.values()], "sshKeys")


def get_network_vlans(account: Account, call: Call) -> Listing:
    """Every VLAN."""
    return Listing([owned.vlan(account, each) for each in account.store.vlans.values()], "networkVlans")


def get_billing_items(account: Account, call: Call) -> Listing:
    """Every top-level billing item; without a filter also the cancelled ones."""
    every = account.store.billing_items.values()
    return Listing([bills.item_view(account, each) for each in every], "allTopLevelBillingItems")


def get_orders(account: Account, call: Call) -> Listing:
    """Every order: the vendor leaves out upgrades, which the emulator does not sell."""
    return Listing([bills.order(account, each) for each in account.store.orders.values()], "orders")


def get_current_user(account: Account, call: Call) -> View:
    """Who is calling, with rights and access to devices."""
    return bills.user(account, users.of(account.settings, call.credentials))


def get_billing_item(account: Account, call: Call) -> View:
    """A billing item, top level or child, open or closed."""
    parent = _parent(account, call)
    if parent is None:
        return bills.item_view(account, find(account.store.billing_items, call))
    return bills.child(account, parent, next(fee for fee in parent.fees if fee.id == identifier(call)))


def cancel_item(account: Account, call: Call) -> bool:
    """Cancel an item with its parts, at once or on its anniversary; other arguments change nothing."""
    parent = _parent(account, call)
    if parent:
        raise public(f"Billing item {call.identifier} is a part of billing item {parent.id}. Cancel that one.")
    cancellation.cancel(account, find(account.store.billing_items, call), immediate=bool(call.argument(0, False)))
    return True


def cancel_service(account: Account, call: Call) -> bool:
    """Cancel at once."""
    return cancel_item(account, replace(call, arguments=(True,)))


def get_order(account: Account, call: Call) -> View:
    """An order."""
    return bills.order(account, find(account.store.orders, call))


def get_vlan(account: Account, call: Call) -> View:
    """A VLAN."""
    return owned.vlan(account, find(account.store.vlans, call))


def get_pods(account: Account, call: Call) -> Listing:
    """Every pod of every datacenter."""
    return Listing([offered.pod(account, router) for router in account.catalog.routers if router.private])


def get_image(account: Account, call: Call) -> View:
    """An image template group, by id or GUID."""
    return offered.image(account, find_image(account, identifier(call)))


def image_is_cloud_init(account: Account, call: Call) -> bool:
    """Whether guests of this image read their user data."""
    return find_image(account, identifier(call)).cloud_init


def _parent(account: Account, call: Call) -> BillingItem | None:
    """The item that the named one is a part of."""
    key = identifier(call)
    every = account.store.billing_items
    if key in every:
        return None
    return next((item for item in every.read_all() if any(fee.id == key for fee in item.fees)), None)


SERVICES = {
    "SoftLayer_Account": {
        "getObject": get_object,
        "getVirtualGuests": get_virtual_guests,
        "getSshKeys": get_ssh_keys,
        "getNetworkVlans": get_network_vlans,
        "getAllTopLevelBillingItems": get_billing_items,
        "getOrders": get_orders,
        "getCurrentUser": get_current_user,
    },
    "SoftLayer_Billing_Item": {
        "getObject": get_billing_item,
        "cancelItem": cancel_item,
        "cancelService": cancel_service,
    },
    "SoftLayer_Billing_Order": {"getObject": get_order},
    "SoftLayer_Network_Pod": {"getAllObjects": get_pods},
    "SoftLayer_Network_Vlan": {"getObject": get_vlan},
    "SoftLayer_Virtual_Guest_Block_Device_Template_Group": {
        "getObject": get_image,
        "isCloudInit": image_is_cloud_init,
    },
}
