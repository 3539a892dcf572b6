"""Templates with the machine types that they run on, and free capacity of each machine type."""

import math

from emulator.paperspace import views
from emulator.paperspace.account import Account
from emulator.paperspace.catalog import MachineType
from emulator.paperspace.errors import CAPACITY_CODE, QUOTA_CODE, ApiError, refused
from emulator.paperspace.operations import Call, Operation, View, inputs, listing


def machine_type(account: Account, label: str) -> MachineType:
    """A type that is sold, or the refusal of an unknown one."""
    sold_type = account.catalog.types.get(label)
    if sold_type is None:
        raise refused(f"Machine type {label} does not exist.")
    return sold_type


def has_room(account: Account, region: str, wanted: MachineType) -> bool:
    """Whether the region sells the type, and the settings' capacity leaves room for one more machine of it."""
    machines = account.store.machines.read_all()
    taken = sum((each.region, each.machine_type) == (region, wanted.label) for each in machines)
    return region in wanted.regions and taken < account.settings.capacity.get(f"{region}/{wanted.label}", math.inf)


def require_room(account: Account, region: str, wanted: MachineType) -> None:
    """Refuse one more machine where the team's limit is reached or the vendor has no room."""
    if len(account.store.machines) >= account.settings.max_machines:
        limit = account.settings.max_machines
        raise ApiError(QUOTA_CODE, f"The limit of your team is reached ({limit} machines).")
    if not has_room(account, region, wanted):
        raise ApiError(CAPACITY_CODE, f"Machine type {wanted.label} is out of capacity in region {region}.")


def templates(account: Account, call: Call) -> list[View]:
    """The operating systems with the machine types that they run on."""
    return [views.template(each) for each in account.catalog.templates.values()]


def availability(account: Account, call: Call) -> View:
    """Whether a machine of a type could be created in a region now."""
    region = account.region(call.input["region"])
    return {"available": has_room(account, region, machine_type(account, call.input["machineType"]))}


_WHAT = inputs({"machineType": str, "region": str}, {})
OPERATIONS = (
    listing("osTemplates-list", "/os-templates", templates, ("name",), needs_key=False, for_members=True),
    Operation("machineAvailability-list", "GET", "/machine-availability", availability, _WHAT, for_members=True),
)
