"""What the account has and what it costs: its lists, billing items, orders, networks and images."""

from emulator.softlayer import cancellation, users
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, find, identifier
from emulator.softlayer.create_template import find_image
from emulator.softlayer.objects import bills, owned
from emulator.softlayer.queries import Listing, View


def get_object(account: Account, call: Call) -> View:
    """The account itself."""
    return View({"id": account.id, "companyName": "microcluster emulator"})


def get_virtual_guests(account: Account, call: Call) -> Listing:
    """Every guest, also those that are being reclaimed."""
    return Listing([owned.guest(account, each) for each in account.store.guests.values()], "virtualGuests")


def get_ssh_keys(account: Account, call: Call) -> Listing:
    """Every SSH key."""
    return Listing([owned.ssh_key(each) for each in account.store.ssh_keys.values()], "sshKeys")


def get_billing_items(account: Account, call: Call) -> Listing:
    """Every top-level billing item; without a filter also the cancelled ones."""
    every = account.store.billing_items.values()
    return Listing([bills.item_view(account, each) for each in every], "allTopLevelBillingItems")


def get_orders(account: Account, call: Call) -> Listing:
    """Every order: the vendor leaves out upgrades, which the emulator does not sell."""
    return Listing([bills.order(account, each) for each in account.store.orders.values()], "orders")


def get_current_user(account: Account, call: Call) -> View:
    """Who is calling, with rights and access to devices."""
    return bills.user(users.of(account.settings, call.credentials))


def get_billing_item(account: Account, call: Call) -> View:
    """A billing item, open or closed; the parts of one are not found."""
    return bills.item_view(account, find(account.store.billing_items, call))


def cancel_item(account: Account, call: Call) -> bool:
    """Cancel an item with its parts, at once or on its anniversary; other arguments change nothing."""
    cancellation.cancel(account, find(account.store.billing_items, call), immediate=bool(call.argument))
    return True


def cancel_service(account: Account, call: Call) -> bool:
    """Cancel at once."""
    cancellation.cancel(account, find(account.store.billing_items, call), immediate=True)
    return True


def get_order(account: Account, call: Call) -> View:
    """An order."""
    return bills.order(account, find(account.store.orders, call))


def get_vlan(account: Account, call: Call) -> View:
    """A VLAN."""
    return owned.vlan(account, find(account.store.vlans, call))


def get_pods(account: Account, call: Call) -> Listing:
    """Every pod of every datacenter."""
    return Listing([owned.pod(router) for router in account.catalog.routers if router.private])


def get_image(account: Account, call: Call) -> View:
    """An image template group."""
    return owned.image(find_image(account, identifier(call)))


def image_is_cloud_init(account: Account, call: Call) -> bool:
    """Whether guests of this image read their user data."""
    return find_image(account, identifier(call)).cloud_init


SERVICES = {
    "SoftLayer_Account": {
        "getObject": get_object,
        "getVirtualGuests": get_virtual_guests,
        "getSshKeys": get_ssh_keys,
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
