"""Cancelling a guest, and proving that it is not billed any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError, WaitError
from providers.rental.waiting import Deadline, Pending, wait_until
from providers.softlayer import guest_view, prices, rights
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError
from providers.softlayer.guest_lookup import sight

Tell = Callable[[str], None]

REFUSED_FOR_S = 10 * 60.0
"""A refusal that lasts so long, while nothing is done on the guest, has another reason than work that has to end first."""
REASON = "No longer needed"
NOTE = "cancelled by microcluster"


def close(
    account: Account,
    guest_id: str,
    owner: marks.Owner,
    deadline: Deadline,
    tell: Tell,
    *,
    is_fresh: Callable[[], bool] = lambda: False,
) -> None:
    """Cancel at once and return when the account shows that the guest is billed no more.

    Args:
        is_fresh: whether it was ordered so recently that the account need not show it yet.

    Raises:
        ProviderError: it is still billed; the text has its id and its price.
    """
    cancellation = _Cancellation(account, guest_id, owner, is_fresh, deadline.time_scale)
    try:
        wait_until(f"guest {guest_id} cancelled", cancellation.look, deadline, tell)
    except (WaitError, ApiError) as error:
        raise ProviderError(
            f"cancelling guest {guest_id}: {error} {cancellation.cost}Run 'pulumi destroy' again."
        ) from error


class _Cancellation:
    """One cancellation on its way: detach, wait out transactions, cancel, look until it is closed."""

    def __init__(
        self, account: Account, guest_id: str, owner: marks.Owner, is_fresh: Callable[[], bool], time_scale: float
    ) -> None:
        self._account = account
        self._id = guest_id
        self._owner = owner
        self._is_fresh = is_fresh
        self._accepted = False
        self._in_transaction = False
        self._time_scale = time_scale
        self._refused_since: float | None = None
        self.cost = ""

    def look(self) -> bool | Pending:
        guest = self._read()
        if guest is None or isinstance(guest, Pending):
            return guest or True
        guest_view.check_ours(guest, self._owner, "cancelling")
        if guest_view.is_cancelled(guest) or (self._accepted and not guest_view.is_billed(guest)):
            rights.check_cancelled(self._account, guest)
            return True
        self.cost = _cost(guest)
        transaction = guest_view.transaction_name(guest)
        self._in_transaction = bool(transaction) and not self._accepted
        if self._in_transaction:
            self._refused_since = None
            return Pending(f"in transaction {transaction}, which has to end first")
        if self._accepted:
            return Pending(f"cancelled, its billing item is {_end(guest)}")
        detach_groups(self._account, guest)
        return self._cancel(guest)

    def _read(self) -> dict[str, Any] | Pending | None:
        # Lists lag behind cancellations, so that only the guest itself proves one; what is merely waited for is in the list.
        if self._in_transaction:
            listed = self._account.guest_list.under(self._owner)
            found = next((guest for guest in listed if str(guest["id"]) == self._id), None)
            if found is not None:
                return found
        return sight(self._account, self._owner, self._id, self._is_fresh)

    def _cancel(self, guest: dict[str, Any]) -> bool | Pending:
        try:
            _send(self._account, guest)
        except ApiError as error:
            if _end_date(guest) and not error.is_transient:
                raise ProviderError(
                    f"cancelling {guest_view.described(guest)}: it was cancelled before, for {_end_date(guest)}, and the API does "
                    f"not end it sooner ({error.text}). {self.cost}Ask the vendor's support to end it now."
                ) from error
            if error.is_forbidden or self._is_final(error):
                raise ProviderError(self._refused(guest, error)) from error
            # Refused because work began in between, lost on the way, or done already: the next look tells which.
            return Pending(f"the API did not accept the cancellation ({error.text})")
        self._accepted = True
        return self.look()

    def _is_final(self, error: ApiError) -> bool:
        """Tell whether the API has refused for so long, with no work on the guest in sight, that it will go on."""
        if error.is_transient:
            self._refused_since = None
            return False
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        return now - self._refused_since > REFUSED_FOR_S * self._time_scale

    def _refused(self, guest: guest_view.Guest, error: ApiError) -> str:
        user, what = self._account.api.credentials.username, guest_view.described(guest)
        if not error.is_forbidden:
            return (
                f"cancelling {what}: the API refuses it ({error.text}). {self.cost}Ask the vendor's support to end it."
            )
        return (
            f"cancelling {what}: user {user} may not ({error.text}). {self.cost}Grant it with 'slcli user edit-permissions "
            f"{user} --enable -p SERVER_CANCEL', or let another user cancel it, and run 'pulumi destroy' again."
        )


def _send(account: Account, guest: Mapping[str, Any]) -> None:
    """Cancel at once; a monthly guest would otherwise run on to its anniversary."""
    if guest.get("hourlyBillingFlag") is False and guest.get("billingItem"):
        item = int(guest["billingItem"]["id"])
        account.api.once("Billing_Item", "cancelItem", True, True, REASON, NOTE, id=item)
    else:
        account.api.once("Virtual_Guest", "deleteObject", id=int(guest["id"]))


def _cost(guest: Mapping[str, Any]) -> str:
    item = guest.get("billingItem")
    if not item:
        return "It is ordered and not billed yet. "
    return f"It is still billed at {prices.rate(item)}. "


def _end(guest: Mapping[str, Any]) -> str:
    date = _end_date(guest)
    return f"billed until {date}" if date else "not closed yet"


def _end_date(guest: Mapping[str, Any]) -> str | None:
    return (guest.get("billingItem") or {}).get("cancellationDate") or None


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
