"""The services of the API: one table of methods for each; what is in none is not emulated."""

from collections.abc import Callable
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.services import (
    account,
    billing,
    catalog,
    network,
    orders,
    search,
    security_groups,
    ssh_keys,
    storage,
    virtual_guests,
)

Method = Callable[[Account, Call], Any]

SERVICES: dict[str, dict[str, Method]] = {
    **account.SERVICES,
    **billing.SERVICES,
    **catalog.SERVICES,
    **network.SERVICES,
    **orders.SERVICES,
    **search.SERVICES,
    **security_groups.SERVICES,
    **ssh_keys.SERVICES,
    **storage.SERVICES,
    **virtual_guests.SERVICES,
}
