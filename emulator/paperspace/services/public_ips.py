"""Public addresses that stay until they are released."""

from typing import Any

from emulator.paperspace import addresses, billing, views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import conflict, refused
from emulator.paperspace.fields import Field
from emulator.paperspace.operations import Call, Operation, list_fields


def claim(account: Account, call: Call) -> dict[str, Any]:
    """Claim an address; it is billed from now on, used or not."""
    return views.public_ip(account, addresses.claim(account, account.region(call.input["region"])))


def find(account: Account, call: Call) -> list[dict[str, Any]]:
    """The claimed addresses, or those in a region."""
    region = account.region(call.input["region"]) if "region" in call.input else None
    ips = account.store.public_ips.values()
    return [views.public_ip(account, each) for each in ips if region in (None, each.region)]


def assign(account: Account, call: Call) -> dict[str, Any]:
    """Give an address to a machine, or take it away; the machine behind it follows at its next start."""
    claimed, ref = account.public_ip(call.path["ip"]), call.input["machineId"]
    if ref is None:
        addresses.unassign(account, claimed)
        return views.public_ip(account, claimed)
    machine = account.machine(ref)
    if machine.region != claimed.region:
        raise refused(
            f"Public IP {claimed.ip} is in region {claimed.region}, machine {machine.ref} in {machine.region}."
        )
    if claimed.machine_id not in (None, machine.id):
        raise conflict(f"Public IP {claimed.ip} belongs to another machine.")
    if machine.public_ip not in (None, claimed.ip):
        raise conflict(f"Machine {machine.ref} has the public IP {machine.public_ip}.")
    addresses.assign(account, claimed, machine)
    return views.public_ip(account, claimed)


def release(account: Account, call: Call) -> dict[str, str]:
    """Release an address, also while a machine has it."""
    claimed = account.public_ip(call.path["ip"])
    addresses.unassign(account, claimed)
    billing.close(account, claimed.id)
    del account.store.public_ips[claimed.id]
    return {"ip": claimed.ip}


OPERATIONS = (
    Operation("publicIps-list", "GET", "/public-ips", find, list_fields("dtCreated", region=Field()), ("dtCreated",)),
    Operation("publicIps-claim", "POST", "/public-ips", claim, {"region": Field(required=True)}),
    Operation(
        "publicIps-assign",
        "PUT",
        "/public-ips/{ip}",
        assign,
        {"machineId": Field(required=True, nullable=True)},
    ),
    Operation("publicIps-release", "DELETE", "/public-ips/{ip}", release),
)
