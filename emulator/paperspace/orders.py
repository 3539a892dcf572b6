"""Order a machine: what has to fit together, and everything that the order makes."""

from collections.abc import Mapping
from typing import Any

from emulator.paperspace import addresses, billing, capacity, lifecycle
from emulator.paperspace.account import Account
from emulator.paperspace.catalog import MachineType, Template
from emulator.paperspace.errors import NotEmulated, not_found, refused, unmet
from emulator.paperspace.lifecycle import OFF
from emulator.paperspace.records import Event, Machine, Network, Upgrade

NOT_EMULATED = (
    "autoSnapshotEnabled",
    "autoShutdownEnabled",
    "restorePointEnabled",
    "takeInitialSnapshot",
    "enableNvlink",
)
ONLY_WITH = {
    "autoSnapshotEnabled": ("autoSnapshotFrequency", "autoSnapshotSaveCount"),
    "autoShutdownEnabled": ("autoShutdownTimeout", "autoShutdownForce"),
    "restorePointEnabled": ("restorePointFrequency",),
}


def order_machine(account: Account, given: Mapping[str, Any]) -> tuple[Machine, Event]:
    """Order a machine, whole or not at all."""
    refuse_not_emulated(given)
    region = account.region(given["region"])
    template, machine_type = _template(account, given["templateId"]), _type(account, given["machineType"])
    if machine_type not in template.types:
        raise refused(f"Template {template.ref} is not offered for machine type {machine_type.label}.")
    disk_gb = _disk(account, given["diskSize"], template)
    script = account.script(given["startupScriptId"]) if "startupScriptId" in given else None
    unknown = [each for each in given.get("accessorIds", ()) if each not in (account.user_ref, account.member_ref)]
    if unknown:
        raise not_found("User", unknown[0])
    network = account.network(given["networkId"]) if "networkId" in given else None
    if network and network.region != region:
        raise refused(f"Private network {network.ref} is in region {network.region}, not in {region}.")
    if region not in machine_type.regions:
        raise capacity.no_room(account.settings, region, machine_type.label)
    capacity.require(account, region, machine_type.label)
    machine = _new(account, given, machine_type, region, network)
    machine.disk_gb = disk_gb
    if script:
        script.machine_ids.append(machine.id)
    return machine, _begin(account, machine, given, machine_type)


def check_upgrade(account: Account, machine: Machine, upgrade: Upgrade) -> None:
    """Refuse a change of type or disk that the vendor does not make."""
    wanted, now = _type(account, upgrade.machine_type), account.catalog.types[machine.machine_type]
    if upgrade.disk_gb < machine.disk_gb:
        raise refused(f"The disk of machine {machine.ref} has {machine.disk_gb} GB; a disk cannot become smaller.")
    if wanted.group != now.group:
        raise refused(
            f"Machine {machine.ref} cannot change from {now.label} to {wanted.label}: another group of types."
        )
    _disk(account, upgrade.disk_gb, account.catalog.templates[machine.template_id])
    if machine.state != OFF:
        raise unmet(f"Machine {machine.ref} is {machine.state}. Stop it before you change its type or disk.")
    if wanted != now and not capacity.has_room(account, machine.region, wanted.label):
        raise capacity.no_room(account.settings, machine.region, wanted.label)


def refuse_not_emulated(given: Mapping[str, Any]) -> None:
    """Say loudly what the emulator would not do, and refuse what makes no sense without it."""
    for name in NOT_EMULATED:
        if given.get(name):
            raise NotEmulated(f"a machine with {name}")
    for switch, names in ONLY_WITH.items():
        alone = [name for name in names if name in given]
        if alone:
            raise refused(f"{alone[0]} needs {switch}.")


def _new(
    account: Account, given: Mapping[str, Any], machine_type: MachineType, region: str, network: Network | None
) -> Machine:
    number, now = account.next_id(), account.now
    home = network or addresses.new_network(account, "default", region, number)
    machine = Machine(
        id=number,
        ref=account.new_ref("ps"),
        name=given["name"],
        machine_type=machine_type.label,
        template_id=given["templateId"],
        region=region,
        disk_gb=0,
        network_id=home.id,
        private_ip=account.free_private_ip(home),
        public_ip_type=addresses.NONE,
        created=now,
        modified=now,
        accessors=list(given.get("accessorIds", ())),
        ssh_keys=[key.text for key in account.store.ssh_keys.values()],
    )
    account.store.machines[number] = machine
    return machine


def _begin(account: Account, machine: Machine, given: Mapping[str, Any], machine_type: MachineType) -> Event:
    """Bill the machine, and begin to build it."""
    start = given.get("startOnCreate", True)
    billing.open_for(account, billing.DISK, machine, account.catalog.disks[machine.disk_gb])
    if start or account.settings.off_is_billed:
        billing.open_for(account, billing.MACHINE, machine, machine_type.per_hour)
    addresses.choose(account, machine, given.get("publicIpType", addresses.NONE))
    if start:
        addresses.power_on(account, machine)
    return lifecycle.provision(account, machine, start=start)


def _type(account: Account, label: str) -> MachineType:
    found = account.catalog.types.get(label)
    if found is None:
        raise refused(f"Machine type {label} does not exist.")
    return found


def _template(account: Account, ref: str) -> Template:
    found = account.catalog.templates.get(ref)
    if found is None:
        raise not_found("Template", ref)
    return found


def _disk(account: Account, size: float, template: Template) -> int:
    if size not in account.catalog.disks:
        sold = ", ".join(map(str, account.catalog.disks))
        raise refused(f"A disk of {size:g} GB is not sold. Use one of {sold}.")
    if template.default_gb and size < template.default_gb:
        raise refused(f"Template {template.ref} needs a disk of {template.default_gb} GB.")
    return int(size)
