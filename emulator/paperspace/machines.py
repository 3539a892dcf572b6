"""Machines, their events, and the scripts that root runs when they boot: order, read, change, start, stop, delete."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from emulator.paperspace import availability, billing, lifecycle, networks, views
from emulator.paperspace.account import Account
from emulator.paperspace.catalog import MachineType
from emulator.paperspace.errors import ApiError, NotEmulated, conflict, not_found, refused
from emulator.paperspace.lifecycle import OFF, PROVISIONING, RUNNING
from emulator.paperspace.operations import Call, Operation, Size, Things, View, inputs, listing
from emulator.paperspace.records import Event, Machine, Script

MACHINES, SCRIPTS = Things("machines", views.machine), Things("scripts", views.script)
SWITCHES = {"autoSnapshotEnabled": bool, "autoShutdownEnabled": bool, "restorePointEnabled": bool}
ONLY_OFF = (*SWITCHES, "takeInitialSnapshot")  # what is not emulated otherwise
ADDRESS = {"publicIpType": Literal[networks.STATIC, networks.DYNAMIC, networks.NONE]}
NEW = inputs(
    {
        "name": Annotated[str, Field(min_length=1)],
        "machineType": str,
        "templateId": str,
        "region": str,
        "diskSize": Size,
    },
    {
        **SWITCHES,
        **ADDRESS,
        "takeInitialSnapshot": bool,
        "networkId": str,
        "startupScriptId": str,
        "emailPassword": bool,
        "startOnCreate": bool,
    },
)
CHANGES = inputs({}, {**SWITCHES, **ADDRESS, "name": str})


def create(account: Account, call: Call) -> View:
    """Order a machine, whole or not at all; it is billed from now on."""
    fields = call.input
    _refuse_not_emulated(fields)
    if not fields.get("startOnCreate", True):
        raise NotEmulated("a machine that does not start when it is created")
    region, machine_type = account.region(fields["region"]), availability.machine_type(account, fields["machineType"])
    disk_gb = _fitting_disk(account, fields, machine_type)
    script = account.find("scripts", fields["startupScriptId"]) if "startupScriptId" in fields else None
    availability.require_room(account, region, machine_type)
    if "networkId" not in fields:
        raise NotEmulated("a machine without networkId")
    network = networks.in_region(account, fields["networkId"], region)
    now = account.now
    machine = Machine(
        id=account.next_id(),
        ref=account.new_ref("ps"),
        name=fields["name"],
        machine_type=machine_type.label,
        template_id=fields["templateId"],
        region=region,
        disk_gb=disk_gb,
        network_id=network.id,
        private_ip=account.free_private_ip(network),
        public_ip_type=networks.NONE,
        created=now,
        modified=now,
    )
    account.store.machines[machine.id] = machine
    if script:
        script.machine_ids.append(machine.id)
    billing.open_for(account, billing.DISK, machine, account.catalog.disks[disk_gb])
    billing.open_for(account, billing.MACHINE, machine, machine_type.rate)
    networks.choose_public_ip(account, machine, fields.get("publicIpType", networks.NONE))
    networks.power_on(account, machine)
    return _receipt(account, machine, lifecycle.provision(account, machine))


def update(account: Account, call: Call) -> View:
    """Change a machine's name, or while it is off the kind of its address."""
    machine, fields = _idle(account, call), call.input
    _refuse_not_emulated(fields)
    if "publicIpType" in fields and fields["publicIpType"] != machine.public_ip_type:
        if machine.state in RUNNING:
            raise NotEmulated("machines-update with another publicIpType while the machine is on")
        networks.choose_public_ip(account, machine, fields["publicIpType"])
    machine.name, machine.modified = fields.get("name", machine.name), account.now
    return {"data": views.machine(account, machine)}


def start(account: Account, call: Call) -> View:
    """Start a machine that is off."""
    machine = _idle(account, call)
    if machine.state != OFF:
        raise refused(f"Machine {machine.ref} is {machine.state} already.")
    return _receipt(account, machine, lifecycle.start(account, machine))


def stop(account: Account, call: Call) -> View:
    """Stop a machine that is on."""
    machine = _idle(account, call)
    if machine.state not in RUNNING:
        raise refused(f"Machine {machine.ref} is {machine.state} already.")
    return _receipt(account, machine, lifecycle.stop(account, machine))


def delete(account: Account, call: Call) -> View:
    """Remove a machine with its disk; a claimed address stays, and goes on costing."""
    machine = MACHINES.one(account, call)
    if machine.deleting:
        raise conflict(f"Machine {machine.ref} is being deleted.")
    if machine.phases and machine.state != PROVISIONING:
        raise _busy(machine)
    if machine.state in RUNNING:
        raise ApiError(
            "PRECONDITION_FAILED", f"Machine {machine.ref} is {machine.state}. Stop it before you delete it."
        )
    return _receipt(account, machine, lifecycle.deactivate(account, machine))


def find_events(account: Account, call: Call) -> list[View]:
    """The events of one machine, or of all; those of a machine that is gone stay."""
    wanted = call.input.get("machineId")
    return [views.event(account, each) for each in account.store.events.values() if wanted in (None, each.machine_ref)]


def create_script(account: Account, call: Call) -> View:
    """Create a script."""
    fields = call.input
    script = Script(
        id=account.next_id(),
        ref=account.new_ref("sc"),
        name=fields["name"],
        text=fields["script"],
        is_run_once=fields.get("isRunOnce", False),
        created=account.now,
    )
    account.store.scripts[script.id] = script
    return views.script(account, script)


def update_script(account: Account, call: Call) -> View:
    """Change a script; machines get it at their next boot."""
    script, given = SCRIPTS.one(account, call), call.input
    script.name, script.text = given.get("name", script.name), given.get("script", script.text)
    script.is_run_once = given.get("isRunOnce", script.is_run_once)
    return views.script(account, script)


def delete_script(account: Account, call: Call) -> View:
    """Delete a script with its assignments."""
    script = SCRIPTS.one(account, call)
    shown = views.script(account, script)
    del account.store.scripts[script.id]
    return shown


def _refuse_not_emulated(given: Mapping[str, Any]) -> None:
    """Say loudly what the emulator would not do."""
    for name in ONLY_OFF:
        if given.get(name):
            raise NotEmulated(f"a machine with {name}")


def _fitting_disk(account: Account, given: Mapping[str, Any], wanted: MachineType) -> int:
    """The size of the disk that is ordered; it has to fit the template, and the template the type."""
    template, size = account.catalog.templates.get(given["templateId"]), given["diskSize"]
    if template is None:
        raise not_found("Template", given["templateId"])
    if wanted not in template.types:
        raise refused(f"Template {template.ref} is not offered for machine type {wanted.label}.")
    if size not in account.catalog.disks:
        sold = ", ".join(map(str, account.catalog.disks))
        raise refused(f"A disk of {size:g} GB is not sold. Use one of {sold}.")
    if template.default_gb and size < template.default_gb:
        raise refused(f"Template {template.ref} needs a disk of {template.default_gb} GB.")
    return int(size)


def _idle(account: Account, call: Call) -> Machine:
    """A machine on which no work is under way."""
    machine = MACHINES.one(account, call)
    if machine.phases or machine.state == PROVISIONING:
        raise _busy(machine)
    return machine


def _busy(machine: Machine) -> Exception:
    return conflict(f"Machine {machine.ref} is {machine.state}: another event is in progress.")


def _receipt(account: Account, machine: Machine, event: Event) -> View:
    return {"event": views.event(account, event), "data": views.machine(account, machine)}


_NEW_SCRIPT = inputs({"name": str, "script": str}, {"isRunOnce": bool})
_CHANGES_OF_SCRIPT = inputs({}, {"name": str, "script": str, "isRunOnce": bool})
OPERATIONS = (
    Operation("machines-create", "POST", "/machines", create, NEW),
    listing("machines-list", "/machines", MACHINES.list, ("dtCreated", "name", "state"), for_members=True),
    Operation("machines-get", "GET", "/machines/{id}", MACHINES.get, for_members=True),
    Operation("machines-update", "PUT", "/machines/{id}", update, CHANGES),
    Operation("machines-delete", "DELETE", "/machines/{id}", delete),
    Operation("machines-start", "PATCH", "/machines/{id}/start", start),
    Operation("machines-stop", "PATCH", "/machines/{id}/stop", stop),
    listing("machineEvents-list", "/machine-events", find_events, ("dtCreated",), {"machineId": str}, for_members=True),
    Operation("startupScripts-create", "POST", "/startup-scripts", create_script, _NEW_SCRIPT),
    listing("startupScripts-list", "/startup-scripts", SCRIPTS.list, ("dtCreated", "name")),
    Operation("startupScripts-get", "GET", "/startup-scripts/{id}", SCRIPTS.get),
    Operation("startupScripts-update", "PUT", "/startup-scripts/{id}", update_script, _CHANGES_OF_SCRIPT),
    Operation("startupScripts-delete", "DELETE", "/startup-scripts/{id}", delete_script),
)
