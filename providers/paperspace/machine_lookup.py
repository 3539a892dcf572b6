"""One machine by its id: there, certainly gone, or not to be known yet; and how it is ended."""

from collections.abc import Sequence
from typing import Any

from providers.paperspace import machine_view
from providers.paperspace.account import ADDRESSES, EVENTS, MACHINES, Account
from providers.paperspace.api import ApiError
from providers.rental.backend import Thing
from providers.rental.owner_mark import Owner
from providers.rental.waiting import Pending

Row = dict[str, Any]


def find(
    account: Account, owner: Owner, machine_id: str, *, fresh: bool, max_age_s: float = 0.0
) -> Thing | Pending | None:
    """Ask the account for a machine; None when it is certainly gone.

    Args:
        fresh: whether it was ordered so recently that the account need not show it yet.
        max_age_s: above 0, the list that all waiters share will do if it shows the machine.
    """
    listed = account.under(MACHINES, owner, max_age_s) if max_age_s else []
    row = next((each for each in listed if each["id"] == machine_id), None) or account.api.find(MACHINES, machine_id)
    if row is not None and row.get("state") in machine_view.ON:
        return machine_view.thing(row)
    found = events(account, machine_id)
    ending = machine_view.deletion(found)
    if ending is not None:
        return Pending(f"machine {machine_id} is being deleted (event {ending.get('id')})")
    if row is not None:
        return machine_view.thing(row, found)
    if fresh:
        return Pending(f"the account does not show machine {machine_id} yet, as it was ordered only now")
    account.check_sees_all(f"looking for machine {machine_id}")
    return None


def events(account: Account, machine_id: str) -> list[Row]:
    """Read a machine's events; of one that is gone the account need not know any."""
    try:
        listed = account.api.list(EVENTS, machineId=machine_id)
    except ApiError as error:
        if error.is_gone:
            return []
        raise
    return [each for each in listed if each.get("machineId") == machine_id]


def cancel(account: Account, machine: Thing) -> Pending | None:
    """Delete a machine that is off, or else stop it first, as the vendor's documents ask.

    A static address is released before, while the machine still says that it is ours: an address has no name, and one that stays
    without its machine is billed for ever.
    """
    if machine.row.get("state") in machine_view.ON:
        account.api.once("PATCH", f"{MACHINES}/{machine.id}/stop", {})
        return Pending("it is being stopped, before it is deleted")
    release_address(account, machine.id, _static(machine.row))
    account.api.once("DELETE", f"{MACHINES}/{machine.id}")
    return None


def release_address(account: Account, machine_id: str, address: str | None) -> None:
    """Release the static addresses of a machine, and the one that it was last seen with unless another machine has it now."""
    held: dict[str, Any] = {str(row["ip"]): row.get("assignedMachineId") for row in account.api.list(ADDRESSES)}
    ours: Sequence[str] = [each for each, holder in held.items() if holder == machine_id]
    if address and not held.get(address):
        ours = [*ours, address]
    for each in ours:
        account.api.remove(ADDRESSES, each)


def _static(row: Row) -> str | None:
    return row.get("publicIp") if row.get("publicIpType") == "static" else None
