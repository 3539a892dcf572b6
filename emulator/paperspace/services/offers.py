"""What can be ordered: templates with their machine types, and whether there is room for a type."""

from typing import Any

from emulator.paperspace import capacity, views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import refused
from emulator.paperspace.fields import Field
from emulator.paperspace.operations import Call, Operation, list_fields

PUBLISHED = 1730419200.0  # 1 November 2024, as most names of the templates say


def templates(account: Account, call: Call) -> list[dict[str, Any]]:
    """The operating systems with the machine types that they run on."""
    wanted = call.input.get("name", "")
    return [views.template(each, PUBLISHED) for each in account.catalog.templates.values() if wanted in each.name]


def availability(account: Account, call: Call) -> dict[str, bool]:
    """Whether a machine of a type could be created in a region now."""
    region = account.region(call.input["region"])
    machine_type = account.catalog.types.get(call.input["machineType"])
    if machine_type is None:
        raise refused(f"Machine type {call.input['machineType']} does not exist.")
    return {"available": region in machine_type.regions and capacity.has_room(account, region, machine_type.label)}


_WHAT = {"machineType": Field(required=True), "region": Field(required=True)}
OPERATIONS = (
    Operation(
        "osTemplates-list",
        "GET",
        "/os-templates",
        templates,
        list_fields("name", name=Field()),
        order_by=("name",),
        needs_key=False,
        for_members=True,
    ),
    Operation("machineAvailability-list", "GET", "/machine-availability", availability, _WHAT, for_members=True),
)
