"""Private networks: one /24 in one region, chosen by the service."""

from typing import Any

from emulator.paperspace import addresses, billing, views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import ApiError, NotEmulated
from emulator.paperspace.fields import BOOLEAN, Field
from emulator.paperspace.operations import Call, Operation, list_fields


def create(account: Account, call: Call) -> dict[str, Any]:
    """Create a network; it answers at once."""
    if call.input.get("migrateMachines"):
        raise NotEmulated("privateNetworks-create with migrateMachines")
    network = addresses.new_network(account, call.input["name"], account.region(call.input["region"]))
    billing.open_for(account, billing.NETWORK, network, account.catalog.network)
    return views.network(account, network)


def get(account: Account, call: Call) -> dict[str, Any] | None:
    """One network; null for an unknown id, and for the default network of a machine."""
    try:
        return views.network(account, account.network(call.path["id"]))
    except ApiError:
        if account.settings.unknown_network == "404":
            raise
        return None


def find(account: Account, call: Call) -> list[dict[str, Any]]:
    """The networks whose name contains a text, or in a region."""
    region = account.region(call.input["region"]) if "region" in call.input else None
    return [
        views.network(account, each)
        for each in account.store.networks.values()
        if each.machine_id is None and call.input.get("name", "") in each.name and region in (None, each.region)
    ]


def update(account: Account, call: Call) -> dict[str, Any]:
    """Rename a network."""
    network = account.network(call.path["id"])
    network.name = call.input.get("name", network.name)
    return views.network(account, network)


def delete(account: Account, call: Call) -> dict[str, str]:
    """Delete a network that has no machine and no drive."""
    network = account.network(call.path["id"])
    machines = [each.ref for each in account.store.machines.read_all() if each.network_id == network.id]
    drives = [each.ref for each in account.store.drives.read_all() if each.network_id == network.id]
    if machines or drives:
        held = ", ".join([*machines, *drives])
        raise ApiError(account.settings.in_use_code, f"Private network {network.ref} is in use by {held}.")
    billing.close(account, network.id)
    del account.store.networks[network.id]
    return {"id": network.ref}


_NEW = {"name": Field(required=True), "region": Field(required=True), "migrateMachines": Field(BOOLEAN)}
_ORDER_BY = ("dtCreated", "name")
_LIST = list_fields(*_ORDER_BY, name=Field(), region=Field())
OPERATIONS = (
    Operation("privateNetworks-create", "POST", "/private-networks", create, _NEW),
    Operation("privateNetworks-list", "GET", "/private-networks", find, _LIST, _ORDER_BY),
    Operation("privateNetworks-get", "GET", "/private-networks/{id}", get),
    Operation("privateNetworks-update", "PUT", "/private-networks/{id}", update, {"name": Field()}),
    Operation("privateNetworks-delete", "DELETE", "/private-networks/{id}", delete),
)
