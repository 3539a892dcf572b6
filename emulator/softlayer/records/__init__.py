"""The records of a SoftLayer account, by kind and id."""

from emulator.softlayer.records.billing import BillingItem, Fee, Order, OrderLine
from emulator.softlayer.records.guests import Component, Guest, GuestDisk, LaterWork, Transaction
from emulator.softlayer.records.networks import GroupRule, SecurityGroup, SshKey, Vlan, Volume
from emulator.store import Store
from emulator.table import Table

__all__ = [
    "BillingItem",
    "Component",
    "Fee",
    "GroupRule",
    "Guest",
    "GuestDisk",
    "LaterWork",
    "Order",
    "OrderLine",
    "Records",
    "SecurityGroup",
    "SshKey",
    "Transaction",
    "Upgrade",
    "Vlan",
    "Volume",
]


class Records(Store):
    """Everything that the account holds."""

    KINDS = {
        "guests": Guest,
        "billing_items": BillingItem,
        "orders": Order,
        "ssh_keys": SshKey,
        "security_groups": SecurityGroup,
        "vlans": Vlan,
        "volumes": Volume,
    }
    RENAMED = {"flavour": "flavor"}

    guests: Table[Guest]
    billing_items: Table[BillingItem]
    orders: Table[Order]
    ssh_keys: Table[SshKey]
    security_groups: Table[SecurityGroup]
    vlans: Table[Vlan]
    volumes: Table[Volume]
