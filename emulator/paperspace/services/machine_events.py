"""The events of machines; those of a machine that is gone stay."""

from typing import Any

from emulator.paperspace import views
from emulator.paperspace.account import Account
from emulator.paperspace.fields import Field
from emulator.paperspace.operations import Call, Operation, list_fields


def find(account: Account, call: Call) -> list[dict[str, Any]]:
    """The events of one machine, or of all."""
    wanted = call.input.get("machineId")
    return [views.event(account, each) for each in account.store.events.values() if wanted in (None, each.machine_ref)]


def get(account: Account, call: Call) -> dict[str, Any]:
    """One event."""
    return views.event(account, account.event(call.path["id"]))


OPERATIONS = (
    Operation(
        "machineEvents-list",
        "GET",
        "/machine-events",
        find,
        list_fields("dtCreated", machineId=Field()),
        ("dtCreated",),
        for_members=True,
    ),
    Operation("machineEvents-get", "GET", "/machine-events/{id}", get, for_members=True),
)
