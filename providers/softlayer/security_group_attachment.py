"""The security groups on a guest's two interfaces, changed while it runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer import guest_view
from providers.softlayer.account import GUEST_MASK, Account
from providers.softlayer.errors import ApiError

SIDES = {
    "primaryNetworkComponent": "public_security_group_ids",
    "primaryBackendNetworkComponent": "private_security_group_ids",
}
GROUP = "Network_SecurityGroup"


@dataclass(frozen=True)
class Change:
    """What to do on one interface."""

    component_id: int
    attach: tuple[int, ...]
    detach: tuple[int, ...]
    is_first: bool
    """The interface has none yet: the first group ever takes effect only after a restart of the guest."""


def changes(guest: Mapping[str, Any], spec: Any) -> list[Change]:
    """Decide what has to be done so that exactly the wanted groups are attached to each interface."""
    planned = []
    for side, attribute in SIDES.items():
        component = guest.get(side) or {}
        if not component.get("id"):
            continue
        wanted, attached = _ids(getattr(spec, attribute)), _ids(guest_view.groups(component))
        attach, detach = (
            tuple(each for each in wanted if each not in attached),
            tuple(each for each in attached if each not in wanted),
        )
        if attach or detach:
            planned.append(Change(int(component["id"]), attach, detach, not attached))
    return planned


def settle(op: Operation, account: Account, guest: guest_view.Guest, spec: Any) -> guest_view.Guest:
    """Attach the wanted groups, detach the others, and restart a guest whose interface had none."""
    planned = changes(guest, spec)
    if not planned:
        return guest

    def look() -> guest_view.Guest | Pending:
        found = account.api.read("Virtual_Guest", "getObject", id=int(guest["id"]), mask=GUEST_MASK, expect=dict)
        try:
            for change in changes(found, spec):
                _carry_out(account, change)
        except ApiError as error:
            if not error.is_transient:
                raise
            return Pending(f"looking which groups are attached, as the answer got lost ({error.text})")
        return found

    settled = wait_until(f"the security groups of {guest_view.described(guest)}", look, op.deadline, op.log.progress)
    if any(change.is_first and change.attach for change in planned):
        op.log.warn(
            f"Restarts {guest_view.described(guest)}: the first security group of an interface works only from then on."
        )
        account.api.ensure("Virtual_Guest", "rebootDefault", id=int(guest["id"]))
    return settled


def _carry_out(account: Account, change: Change) -> None:
    """Put the new ones on before the old ones come off: an interface without groups is open to everybody."""
    for group in change.attach:
        account.api.once(GROUP, "attachNetworkComponents", [change.component_id], id=group)
    for group in change.detach:
        account.api.once(GROUP, "detachNetworkComponents", [change.component_id], id=group)


def _ids(texts: Sequence[str]) -> list[int]:
    return [int(each) for each in texts]
