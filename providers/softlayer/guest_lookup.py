"""One guest by its id: there, certainly gone, or not to be known yet."""

from collections.abc import Mapping, Sequence
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.waiting import Pending
from providers.softlayer import order_status
from providers.softlayer.account import Account, check_to_see
from providers.softlayer.errors import ApiError

Row = Mapping[str, Any]


def find(
    account: Account, owner: marks.Owner, guest_id: str, *, fresh: bool, max_age_s: float = 0.0
) -> dict[str, Any] | Pending | None:
    """Ask the account for a guest; None when it is certainly gone.

    Args:
        fresh: whether it was ordered so recently that the account need not show it yet.
        max_age_s: above 0, the list that all waiters share will do if it shows the guest.
    """
    try:
        guest = account.guest(guest_id, owner, max_age_s)
    except ApiError as error:
        if error.is_unready:
            return Pending(f"guest {guest_id} is too fresh to be shown")
        raise
    return guest or missing(account, owner, guest_id, fresh=fresh, max_age_s=max_age_s)


def missing(
    account: Account, owner: marks.Owner, guest_id: str, *, fresh: bool, max_age_s: float = 0.0
) -> Pending | None:
    """Decide what it means that the account does not show a guest; None: it is gone, and this user would see it.

    Raises:
        ProviderError: this user does not see all guests, so that it may be there.
    """
    listed = account.guest_list.under(owner, max_age_s)
    state = absence(account.bill_list.under(owner, max_age_s), listed, guest_id, fresh=fresh)
    if state is not None:
        return state
    waiting = order_status.waiting_unshown(account.order_list.under(owner, max_age_s), listed)
    if waiting is not None:
        return Pending(f"the account does not show guest {guest_id}, and {order_status.described(waiting)}")
    check_to_see(account, guest_id)
    return None


def absence(items: Sequence[Row], listed: Sequence[Row], guest_id: str, *, fresh: bool) -> Pending | None:
    """Decide by billing items and by the guests that are listed what it means that a guest is not shown; None: it is gone.

    Right after its order a guest answers "not found" and is in no list, so that its absence alone proves nothing.
    """
    if fresh:
        return Pending(f"the account does not show guest {guest_id} yet, as it was ordered only now")
    unclaimed = open_without_guest(items, listed)
    if unclaimed:
        return Pending(f"the account does not show guest {guest_id}, but billing item {', '.join(unclaimed)} is open")
    return None


def open_without_guest(items: Sequence[Row], listed: Sequence[Row]) -> list[str]:
    """Return the open billing items that no listed guest names as its own.

    SoftLayer_Billing_Item names no guest (only its subtype for guests has ``resourceTableId``), but a guest names its item.
    """
    claimed = {str((guest.get("billingItem") or {}).get("id")) for guest in listed}
    return [str(each["id"]) for each in items if not each.get("cancellationDate") and str(each["id"]) not in claimed]
