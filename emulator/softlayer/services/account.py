"""Service of the account: its lists, billing items, orders, networks and images."""

from functools import partial

from emulator.softlayer import billing, cancellation, users
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, find, identifier
from emulator.softlayer.create_template import find_image
from emulator.softlayer.faults import not_found
from emulator.softlayer.objects import bills, owned
from emulator.softlayer.portal import OFFERS, VOLUME
from emulator.softlayer.queries import View
from emulator.softlayer.services.reading import every, one, relations


def get_object(account: Account, call: Call) -> View:
    """The account itself, and all that it has: also guests that are being reclaimed, and cancelled billing items."""
    store = account.store
    return View(
        {"id": account.id, "companyName": "microcluster emulator"},
        {
            "virtualGuests": lambda: [owned.guest(account, each) for each in store.guests.read_all()],
            "hourlyVirtualGuests": lambda: [
                owned.guest(account, each) for each in store.guests.read_all() if each.hourly
            ],
            "monthlyVirtualGuests": lambda: [
                owned.guest(account, each) for each in store.guests.read_all() if not each.hourly
            ],
            "sshKeys": lambda: [owned.ssh_key(account, each) for each in store.ssh_keys.read_all()],
            "allTopLevelBillingItems": lambda: [
                bills.item_view(account, each) for each in store.billing_items.read_all()
            ],
            "orders": lambda: [bills.order(account, each) for each in store.orders.read_all()],
            "networkVlans": lambda: [owned.vlan(account, each) for each in store.vlans.read_all()],
            "subnets": lambda: [owned.subnet(each) for each in store.vlans.read_all()],
            "users": lambda: [bills.user(account, each) for each in users.every(account).values()],
            **dict.fromkeys(("dedicatedHosts", "domains", "hardware", "openTickets"), list),
            "blockDeviceTemplateGroups": lambda: [
                owned.image(each) for each in account.catalog.images if not each.foreign
            ],
            "networkStorage": lambda: [
                {"id": each.resource_id} for each in store.billing_items.living() if each.category == OFFERS[VOLUME][0]
            ],
            "nextInvoiceTotalAmount": lambda: str(billing.due_next(account)),
            "pendingInvoice": lambda: View(
                {"startingBalance": "0"}, {"invoiceTotalAmount": lambda: str(billing.due_next(account))}
            ),
        },
    )


def get_current_user(account: Account, call: Call) -> View:
    """The calling user, with rights and access to devices."""
    return bills.user(account, users.of(account, call.credentials))


def add_permissions(account: Account, call: Call) -> bool:
    """Permit a user more, until the account is reset."""
    number, facts = identifier(call), account.store.facts
    if number not in {user.id for user in users.every(account).values()}:
        raise not_found(number)
    fact = f"{users.GRANTED}{number}"
    facts[fact] = " ".join([facts.get(fact, ""), *(each["keyName"] for each in call.argument)])
    return True


def cancel_item(account: Account, call: Call) -> bool:
    """Cancel an item with its parts, at once or on its anniversary; other arguments change nothing."""
    cancellation.cancel(account, find(account.store.billing_items, call), immediate=bool(call.argument))
    return True


def cancel_service(account: Account, call: Call) -> bool:
    """Cancel at once."""
    cancellation.cancel(account, find(account.store.billing_items, call), immediate=True)
    return True


def get_image(account: Account, call: Call) -> View:
    """An image template group."""
    return owned.image(find_image(account, identifier(call)))


def image_is_cloud_init(account: Account, call: Call) -> bool:
    """Whether guests of this image read their user data."""
    return find_image(account, identifier(call)).cloud_init


SERVICES = {
    "SoftLayer_Account": {
        "getObject": get_object,
        "getCurrentUser": get_current_user,
        **relations(get_object, "virtualGuests", "hourlyVirtualGuests", "monthlyVirtualGuests", "hardware", "sshKeys"),
        **relations(get_object, "networkVlans", "allTopLevelBillingItems", "orders", "users"),
    },
    "SoftLayer_User_Customer": {"addBulkPortalPermission": add_permissions},
    "SoftLayer_User_Permission_Action": {
        "getAllObjects": partial(every, lambda _: [View({"keyName": each}) for each in sorted(users.PERMISSIONS)])
    },
    "SoftLayer_Billing_Item": {
        "getObject": partial(one, bills.item_view, "billing_items"),
        "cancelItem": cancel_item,
        "cancelService": cancel_service,
    },
    "SoftLayer_Billing_Order": {"getObject": partial(one, bills.order, "orders")},
    "SoftLayer_Location": {
        "getDatacenters": partial(
            every, lambda account: [owned.datacenter(each) for each in account.catalog.datacenters]
        )
    },
    "SoftLayer_Network_Pod": {
        "getAllObjects": partial(
            every, lambda account: [owned.pod(account, each) for each in account.catalog.routers if each.private]
        )
    },
    "SoftLayer_Network_Vlan": {"getObject": partial(one, owned.vlan, "vlans")},
    "SoftLayer_Virtual_Guest_Block_Device_Template_Group": {
        "getObject": get_image,
        "isCloudInit": image_is_cloud_init,
    },
}
