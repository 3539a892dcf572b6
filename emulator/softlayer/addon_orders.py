"""Orders of volumes and VLANs, which people make in the vendor's portal; each has a billing item.

The emulated API cannot order them. Tests use them to see how the product treats things that no stack declares.
"""

from decimal import Decimal

from emulator.softlayer import billing, networks
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Price
from emulator.softlayer.create_template import find_datacenter
from emulator.softlayer.faults import public
from emulator.softlayer.orders import lines_of
from emulator.softlayer.records import BillingItem, Order, Volume

VOLUME, VLAN = "volume", "vlan"
GB = 100
OFFERS = {
    VOLUME: (189433, "STORAGE_AS_A_SERVICE", "Storage as a Service", "storage_as_a_service", "0.03"),
    VLAN: (203719, "PRIVATE_NETWORK_VLAN", "Private Network Vlan", "network_vlan", "0.015"),
}


def order(
    account: Account, kind: str, text: str = "", datacenter: str = "lon04", *, hourly: bool = True, notes: str = ""
) -> BillingItem:
    """Order a volume (``text``: its notes) or a private VLAN (its name); ``notes``: the billing item's."""
    if kind not in OFFERS:
        raise public(f"The portal orders a {' or a '.join(OFFERS)}, not a {kind}.")
    place = find_datacenter(account, datacenter)
    prices = (_price(account, kind),)
    placed = Order(
        account.next_id(),
        account.now,
        str(account.catalog.cost(prices, hourly=hourly)),
        hourly,
        lines_of(prices),
        [],
        kind,
    )
    account.store.orders[placed.id] = placed
    described = billing.Billed(kind, 0, place.name, category=prices[0].category.code, notes=notes)
    item = billing.open_item(account, placed, prices, described, hourly=hourly)
    item.resource_id = (_volume if kind == VOLUME else _vlan)(account, item, text, place)
    return item


def end_volume(account: Account, item: BillingItem) -> None:
    """Remove a volume."""
    del account.store.volumes[item.resource_id]


def _price(account: Account, kind: str) -> Price:
    number, key_name, description, category, fee = OFFERS[kind]
    return Price(number, number, key_name, description, account.catalog.categories[category], Decimal(fee))


def _volume(account: Account, item: BillingItem, notes: str, place: Datacenter) -> int:
    number = account.next_id()
    name = f"SL02SEL{account.id}-{number}"
    account.store.volumes[number] = Volume(number, item.id, name, place.name, GB, account.now, notes)
    return number


def _vlan(account: Account, item: BillingItem, name: str, place: Datacenter) -> int:
    router = next(each for each in account.catalog.routers if each.private and each.datacenter == place)
    vlan = networks.new_vlan(account, router)
    vlan.name, vlan.billing_item_id = name, item.id
    return vlan.id
