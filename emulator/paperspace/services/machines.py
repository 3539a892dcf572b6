"""Machines: create, read, change, start, stop, restart, delete."""

from typing import Any

from emulator.paperspace import addresses, lifecycle, orders, views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import NotEmulated, conflict, refused, unmet
from emulator.paperspace.fields import BOOLEAN, NUMBER, STRINGS, Field
from emulator.paperspace.lifecycle import OFF, PROVISIONING, RUNNING
from emulator.paperspace.operations import Call, Operation, list_fields
from emulator.paperspace.records import Event, Machine, Upgrade

CHANGEABLE = {
    "networkId": Field(),
    "publicIpType": Field(one_of=("static", "dynamic", "none")),
    "autoSnapshotEnabled": Field(BOOLEAN),
    "autoSnapshotFrequency": Field(one_of=("hourly", "daily", "weekly", "monthly")),
    "autoSnapshotSaveCount": Field(NUMBER),
    "autoShutdownEnabled": Field(BOOLEAN),
    "autoShutdownTimeout": Field(NUMBER),
    "autoShutdownForce": Field(BOOLEAN),
    "restorePointEnabled": Field(BOOLEAN),
    "restorePointFrequency": Field(one_of=("shutdown",)),
}
NEW = {
    **CHANGEABLE,
    "name": Field(required=True, shortest=1),
    "machineType": Field(required=True),
    "templateId": Field(required=True),
    "region": Field(required=True),
    "diskSize": Field(NUMBER, required=True, positive=True),
    "takeInitialSnapshot": Field(BOOLEAN),
    "startupScriptId": Field(),
    "emailPassword": Field(BOOLEAN),
    "startOnCreate": Field(BOOLEAN),
    "enableNvlink": Field(BOOLEAN),
    "accessorIds": Field(STRINGS),
}
CHANGES = {
    **CHANGEABLE,
    "name": Field(),
    "machineType": Field(),
    "diskSize": Field(NUMBER, positive=True),
    "restorePointSnapshotId": Field(),
}


def create(account: Account, call: Call) -> dict[str, Any]:
    """Order a machine; it is billed from now on."""
    machine, event = orders.order_machine(account, call.input)
    return _receipt(account, machine, event)


def get(account: Account, call: Call) -> dict[str, Any]:
    """One machine."""
    return views.machine(account, account.machine(call.path["id"]))


def find(account: Account, call: Call) -> list[dict[str, Any]]:
    """The machines whose name contains a text, in a region, of an agent's type or of a machine type."""
    given = call.input
    region = account.region(given["region"]) if "region" in given else None
    shown = [
        each
        for each in account.store.machines.values()
        if given.get("name", "") in each.name
        and region in (None, each.region)
        and given.get("machineType") in (None, each.machine_type)
        and given.get("agentType") in (None, views.AGENT)
    ]
    return [views.machine(account, each) for each in shown]


def update(account: Account, call: Call) -> dict[str, Any]:
    """Change a machine; another type or disk takes a while, and only a machine that is off can have it."""
    machine, given = _idle(account, call), call.input
    orders.refuse_not_emulated(given)
    if given.get("networkId") or given.get("restorePointSnapshotId"):
        raise NotEmulated("machines-update with networkId or restorePointSnapshotId")
    upgrade = Upgrade(given.get("machineType", machine.machine_type), int(given.get("diskSize", machine.disk_gb)))
    event = None
    if upgrade != Upgrade(machine.machine_type, machine.disk_gb):
        orders.check_upgrade(account, machine, upgrade)
        event = lifecycle.change(account, machine, upgrade)
    if "publicIpType" in given and given["publicIpType"] != machine.public_ip_type:
        if machine.state in RUNNING:
            raise NotEmulated("machines-update with another publicIpType while the machine is on")
        addresses.choose(account, machine, given["publicIpType"])
    machine.name, machine.modified = given.get("name", machine.name), account.now
    return {"data": views.machine(account, machine)} | ({"event": views.event(account, event)} if event else {})


def start(account: Account, call: Call) -> dict[str, Any]:
    """Start a machine that is off."""
    machine = _idle(account, call)
    if machine.state != OFF:
        return _redundant(account, machine, "start")
    return _receipt(account, machine, lifecycle.start(account, machine))


def stop(account: Account, call: Call) -> dict[str, Any]:
    """Stop a machine that is on."""
    machine = _idle(account, call)
    if machine.state not in RUNNING:
        return _redundant(account, machine, "stop")
    return _receipt(account, machine, lifecycle.stop(account, machine))


def restart(account: Account, call: Call) -> dict[str, Any]:
    """Stop a machine that is on and start it at once."""
    machine = _idle(account, call)
    if machine.state not in RUNNING:
        raise refused(f"Machine {machine.ref} is {machine.state}: only a machine that is on can be restarted.")
    return _receipt(account, machine, lifecycle.restart(account, machine))


def delete(account: Account, call: Call) -> dict[str, Any]:
    """Remove a machine with its disk; a claimed address stays, and goes on costing."""
    machine = account.machine(call.path["id"])
    if machine.deleting:
        raise conflict(f"Machine {machine.ref} is being deleted.")
    if machine.phases and machine.state != PROVISIONING:
        raise _busy(machine)
    if machine.state in RUNNING and account.settings.delete_running == "refused":
        raise unmet(f"Machine {machine.ref} is {machine.state}. Stop it before you delete it.")
    return _receipt(account, machine, lifecycle.deactivate(account, machine))


def _idle(account: Account, call: Call) -> Machine:
    """A machine on which no work is under way."""
    machine = account.machine(call.path["id"])
    if machine.phases or machine.state == PROVISIONING:
        raise _busy(machine)
    return machine


def _busy(machine: Machine) -> Exception:
    return conflict(f"Machine {machine.ref} is {machine.state}: another event is in progress.")


def _redundant(account: Account, machine: Machine, name: str) -> dict[str, Any]:
    if account.settings.redundant_actions == "refused":
        raise refused(f"Machine {machine.ref} is {machine.state} already.")
    event = lifecycle.new_event(account, machine, name)
    event.state, event.started, event.finished = lifecycle.DONE, account.now, account.now
    return _receipt(account, machine, event)


def _receipt(account: Account, machine: Machine, event: Event) -> dict[str, Any]:
    return {"event": views.event(account, event), "data": views.machine(account, machine)}


_FILTERS = {name: Field() for name in ("name", "region", "agentType", "machineType")}
_ORDER_BY = ("dtCreated", "name", "state")
OPERATIONS = (
    Operation("machines-create", "POST", "/machines", create, NEW),
    Operation(
        "machines-list", "GET", "/machines", find, list_fields(*_ORDER_BY, **_FILTERS), _ORDER_BY, for_members=True
    ),
    Operation("machines-get", "GET", "/machines/{id}", get, for_members=True),
    Operation("machines-update", "PUT", "/machines/{id}", update, CHANGES),
    Operation("machines-delete", "DELETE", "/machines/{id}", delete),
    Operation("machines-start", "PATCH", "/machines/{id}/start", start, for_members=True),
    Operation("machines-stop", "PATCH", "/machines/{id}/stop", stop, for_members=True),
    Operation("machines-restart", "PATCH", "/machines/{id}/restart", restart, for_members=True),
)
