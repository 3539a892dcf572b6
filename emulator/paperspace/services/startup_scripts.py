"""Startup scripts: root runs them at the first boot, or at every boot; their text is never shown."""

from typing import Any

from emulator.paperspace import views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import conflict
from emulator.paperspace.fields import BOOLEAN, Field
from emulator.paperspace.operations import Call, Operation, list_fields
from emulator.paperspace.records import Script


def create(account: Account, call: Call) -> dict[str, Any]:
    """Create a script."""
    given = call.input
    script = Script(
        id=account.next_id(),
        ref=account.new_ref("sc"),
        name=given["name"],
        text=given["script"],
        is_run_once=given.get("isRunOnce", False),
        created=account.now,
    )
    account.store.scripts[script.id] = script
    return views.script(account, script)


def get(account: Account, call: Call) -> dict[str, Any]:
    """One script."""
    return views.script(account, account.script(call.path["id"]))


def find(account: Account, call: Call) -> list[dict[str, Any]]:
    """The scripts whose name contains a text."""
    wanted = call.input.get("name", "")
    return [views.script(account, each) for each in account.store.scripts.values() if wanted in each.name]


def update(account: Account, call: Call) -> dict[str, Any]:
    """Change a script; machines get it at their next boot."""
    script, given = account.script(call.path["id"]), call.input
    script.name, script.text = given.get("name", script.name), given.get("script", script.text)
    script.is_run_once = given.get("isRunOnce", script.is_run_once)
    script.is_enabled = given.get("isEnabled", script.is_enabled)
    return views.script(account, script)


def delete(account: Account, call: Call) -> dict[str, Any]:
    """Delete a script with its assignments."""
    script = account.script(call.path["id"])
    shown = views.script(account, script)
    del account.store.scripts[script.id]
    return shown


def assign(account: Account, call: Call) -> dict[str, Any]:
    """Let a machine run a script at its next boot."""
    script, machine = account.script(call.path["id"]), account.machine(call.input["machineId"])
    others = [
        each.ref for each in account.store.scripts.read_all() if machine.id in each.machine_ids and each != script
    ]
    if others:
        raise conflict(f"Machine {machine.ref} has the startup script {others[0]}; unassign that one first.")
    if machine.id not in script.machine_ids:
        script.machine_ids.append(machine.id)
    return views.script(account, script)


def unassign(account: Account, call: Call) -> dict[str, Any]:
    """Take a script from a machine."""
    script, machine = account.script(call.path["id"]), account.machine(call.input["machineId"])
    script.machine_ids = [each for each in script.machine_ids if each != machine.id]
    return views.script(account, script)


_NEW = {"name": Field(required=True), "script": Field(required=True), "isRunOnce": Field(BOOLEAN)}
_CHANGES = {"name": Field(), "script": Field(), "isRunOnce": Field(BOOLEAN), "isEnabled": Field(BOOLEAN)}
_MACHINE = {"machineId": Field(required=True)}
_ORDER_BY = ("dtCreated", "name")
OPERATIONS = (
    Operation("startupScripts-create", "POST", "/startup-scripts", create, _NEW),
    Operation("startupScripts-list", "GET", "/startup-scripts", find, list_fields(*_ORDER_BY, name=Field()), _ORDER_BY),
    Operation("startupScripts-get", "GET", "/startup-scripts/{id}", get),
    Operation("startupScripts-update", "PUT", "/startup-scripts/{id}", update, _CHANGES),
    Operation("startupScripts-delete", "DELETE", "/startup-scripts/{id}", delete),
    Operation("startupScripts-assign", "POST", "/startup-scripts/{id}/assign", assign, _MACHINE),
    Operation("startupScripts-unassign", "POST", "/startup-scripts/{id}/unassign", unassign, _MACHINE),
)
