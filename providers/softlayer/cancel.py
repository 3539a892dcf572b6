"""Cancelling a guest, and proving that it is not billed any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from providers.softlayer import guests
from providers.softlayer.account import Account, per_hour
from providers.softlayer.errors import ApiError, ProviderError, WaitError
from providers.softlayer.waiting import Patience, Pending, wait_until

Tell = Callable[[str], None]


def close(account: Account, guest_id: str, owner_mark: str, patience: Patience, tell: Tell) -> None:
    """Cancel at once and return when the account shows no billing item for the guest.

    Raises:
        ProviderError: it is still billed; the text has its id and its price.
    """
    cancellation = _Cancellation(account, guest_id, owner_mark)
    try:
        wait_until(f"guest {guest_id} cancelled", cancellation.look, patience, tell)
    except (WaitError, ApiError) as error:
        raise ProviderError(
            f"cancelling guest {guest_id}: {error} {cancellation.cost}Run 'pulumi destroy' again."
        ) from error


class _Cancellation:
    """One cancellation on its way: detach, wait out transactions, cancel, look until it is closed."""

    def __init__(self, account: Account, guest_id: str, owner_mark: str) -> None:
        self._account = account
        self._id = guest_id
        self._mark = owner_mark
        self._accepted = False
        self.cost = ""

    def look(self) -> bool | Pending:
        guest = self._account.guest(self._id, self._mark)
        if guest is None or not guests.is_billed(guest):
            return True
        self.cost = f"It is still billed at {per_hour(guest['billingItem']):f} an hour. "
        transaction = guests.transaction_name(guest)
        if transaction and not self._accepted:
            return Pending(f"in transaction {transaction}, which has to end first")
        if not self._accepted:
            detach_groups(self._account, guest)
            return self._cancel()
        return Pending("cancelled, its billing item is not closed yet")

    def _cancel(self) -> bool | Pending:
        try:
            self._account.api.once("Virtual_Guest", "deleteObject", id=int(self._id))
        except ApiError as error:
            # Refused because work began in between, lost on the way, or done already: the next look tells which.
            return Pending(f"the API did not accept the cancellation ({error.text})")
        self._accepted = True
        return self.look()


def detach_groups(account: Account, guest: dict[str, Any]) -> None:
    """Take a guest out of its security groups, so that they can be deleted before the reclaim is over.

    A refusal is left alone: nothing may stand between a guest and its cancellation, and the groups' own delete tries again.
    """
    for side in ("primaryNetworkComponent", "primaryBackendNetworkComponent"):
        component = guest.get(side) or {}
        for binding in component.get("securityGroupBindings") or []:
            group_id = (binding.get("securityGroup") or {}).get("id")
            if group_id and component.get("id"):
                _detach(account, int(group_id), int(component["id"]))


def _detach(account: Account, group_id: int, component_id: int) -> None:
    try:
        account.api.once("Network_SecurityGroup", "detachNetworkComponents", [component_id], id=group_id)
    except ApiError:
        return
