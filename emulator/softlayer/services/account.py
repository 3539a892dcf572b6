"""SoftLayer_Account: the lists of everything the account holds."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from emulator.softlayer import invoices, users
from emulator.softlayer.account import Account
from emulator.softlayer.billing import CENT
from emulator.softlayer.calls import Call
from emulator.softlayer.objects import bills, disks, goods, guests, places, security
from emulator.softlayer.objects import invoices as invoice_views
from emulator.softlayer.records import Guest
from emulator.softlayer.services import storage
from emulator.softlayer.views import Listing, View


def get_object(account: Account, call: Call) -> View:
    """The account itself."""
    settings = account.settings
    local = {
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
    counted = {name: lambda name=name: [None] * _counts(account)[name] for name in _counts(account)}
    return View(
        local,
        counted
        | {
            "masterUser": lambda: bills.user(account),
            "nextInvoiceTotalAmount": lambda: str(_due_next(account)),
            "nextInvoiceTotalRecurringAmount": lambda: str(_due_next(account)),
            "pendingInvoice": lambda: _pending_invoice(account),
            "balance": lambda: "0",
        },
    )


def get_virtual_guests(account: Account, call: Call) -> Listing:
    """Every guest, also those that are being reclaimed."""
    return _guests(account, lambda guest: True)


def get_hourly_virtual_guests(account: Account, call: Call) -> Listing:
    """The guests billed by the hour."""
    return _guests(account, lambda guest: guest.hourly)


def get_monthly_virtual_guests(account: Account, call: Call) -> Listing:
    """The guests billed by the month."""
    return _guests(account, lambda guest: not guest.hourly)


def get_ssh_keys(account: Account, call: Call) -> Listing:
    """Every SSH key."""
    return Listing([security.ssh_key(each) for each in account.store.ssh_keys.values()], "sshKeys")


def get_network_vlans(account: Account, call: Call) -> Listing:
    """Every VLAN."""
    return Listing([places.vlan(account, each) for each in account.store.vlans.values()], "networkVlans")


def get_subnets(account: Account, call: Call) -> Listing:
    """Every subnet."""
    return Listing([places.subnet(account, each) for each in account.store.vlans.values()], "subnets")


def get_routers(account: Account, call: Call) -> Listing:
    """Every router a guest may be placed behind."""
    return Listing([places.router(account, each) for each in account.catalog.routers], "routers")


def get_billing_items(account: Account, call: Call) -> Listing:
    """Every top-level billing item; without a filter also the cancelled ones."""
    return Listing(
        [bills.item_view(account, each) for each in account.store.billing_items.values()], "allTopLevelBillingItems"
    )


def get_invoices(account: Account, call: Call) -> Listing:
    """The issued invoices; what has been charged since the last one is the pending invoice."""
    return Listing([invoice_views.invoice(account, each) for each in invoices.issued(account)], "invoices")


def get_next_total(account: Account, call: Call) -> str:
    """The dollars of the next invoice."""
    return str(_due_next(account))


def get_pending_invoice(account: Account, call: Call) -> View | None:
    """The invoice of the month that is running."""
    return _pending_invoice(account)


def get_images(account: Account, call: Call) -> Listing:
    """The account's own images."""
    own = [goods.image(account, each) for each in account.catalog.images if each.private and not each.foreign]
    return Listing(own, "privateBlockDeviceTemplateGroups")


def get_portable_volumes(account: Account, call: Call) -> Listing:
    """The secondary disks of all guests."""
    return Listing(disks.portable_volumes(account), "portableStorageVolumes")


def get_orders(account: Account, call: Call) -> Listing:
    """Every order: the vendor leaves out upgrades, which the emulator does not sell."""
    return Listing([bills.order(account, each) for each in account.store.orders.values()], "orders")


def get_current_user(account: Account, call: Call) -> View:
    """Who is calling, with rights and access to devices."""
    return bills.user(account, users.of(account.settings, call.credentials))


def nothing(root: str) -> Callable[[Account, Call], Listing]:
    """A list that is always empty, because the emulator sells no such thing."""

    def listed(account: Account, call: Call) -> Listing:
        """An empty list: the emulator sells no such thing."""
        return Listing([], root)

    return listed


def _guests(account: Account, wanted: Callable[[Guest], bool]) -> Listing:
    every = sorted(account.store.guests.items())
    return Listing([guests.guest(account, guest) for _, guest in every if wanted(guest)], "virtualGuests")


def _pending_invoice(account: Account) -> View | None:
    pending = invoices.pending(account)
    return invoice_views.invoice(account, pending) if pending else None


def _due_next(account: Account) -> Decimal:
    items = account.store.billing_items.read_all()
    return sum((invoices.due_next(account, item) for item in items), Decimal()).quantize(CENT)


def _counts(account: Account) -> dict[str, int]:
    sizes: dict[str, Any] = {
        "virtualGuests": len(account.store.guests),
        "networkVlans": len(account.store.vlans),
        "subnets": len(account.store.vlans),
        "networkStorage": len(account.store.volumes),
        "sshKeys": len(account.store.ssh_keys),
        "users": 1,
        "blockDeviceTemplateGroups": sum(image.private and not image.foreign for image in account.catalog.images),
    }
    absent = ("dedicatedHosts", "domains", "hardware", "openTickets")
    return sizes | dict.fromkeys(absent, 0)


SERVICES = {
    "SoftLayer_Account": {
        "getObject": get_object,
        "getVirtualGuests": get_virtual_guests,
        "getHourlyVirtualGuests": get_hourly_virtual_guests,
        "getMonthlyVirtualGuests": get_monthly_virtual_guests,
        "getSshKeys": get_ssh_keys,
        "getNetworkVlans": get_network_vlans,
        "getSubnets": get_subnets,
        "getRouters": get_routers,
        "getAllTopLevelBillingItems": get_billing_items,
        "getPrivateBlockDeviceTemplateGroups": get_images,
        "getPortableStorageVolumes": get_portable_volumes,
        "getOrders": get_orders,
        "getUpgradeRequests": nothing("upgradeRequests"),
        "getCurrentUser": get_current_user,
        "getPlacementGroups": nothing("placementGroups"),
        **storage.OF_ACCOUNT,
        "getInvoices": get_invoices,
        "getNextInvoiceTotalAmount": get_next_total,
        "getPendingInvoice": get_pending_invoice,
        "getHardware": nothing("hardware"),
        "getDedicatedHosts": nothing("dedicatedHosts"),
        "getActiveVirtualLicenses": nothing("activeVirtualLicenses"),
        "getActiveAccountLicenses": nothing("activeAccountLicenses"),
    }
}
