"""Everything in an account that carries a mark of microcluster: found in the account's own lists."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.backend import Belonging
from providers.softlayer import guest_view, others
from providers.softlayer.account import GUEST_MASK, Account
from providers.softlayer.billing import dated, per_hour

GUEST, KEY, GROUP = "guest", "key", "group"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Listing:
    """How one kind is listed, and how a row of the list tells whose it is."""

    kind: str
    service: str
    method: str
    mask: str
    owner: Callable[[Row], marks.Owner | None]
    name: Callable[[Row], str]
    filter: Mapping[str, Any] | None = None
    cancel_by_hand: Callable[[Row], str] = lambda row: ""


LISTINGS = (
    _Listing(
        GUEST,
        "Account",
        "getVirtualGuests",
        GUEST_MASK,
        lambda row: marks.owner_in_domain(row.get("domain")),
        lambda row: f"{row['hostname']}.{row['domain']}",
        {"virtualGuests": {"domain": {"operation": f"$= .{marks.ZONE}"}}},
    ),
    _Listing(
        KEY,
        "Account",
        "getSshKeys",
        "mask[id,label,notes,createDate]",
        lambda row: marks.owner_in_notes(row.get("notes")),
        lambda row: str(row.get("label") or ""),
    ),
    _Listing(
        GROUP,
        "Network_SecurityGroup",
        "getAllObjects",
        "mask[id,name,description,createDate]",
        lambda row: marks.owner_in_notes(row.get("description")),
        lambda row: str(row.get("name") or ""),
    ),
    *(
        _Listing(each.kind, "Account", each.method, each.mask, each.owner, each.name, cancel_by_hand=each.cancel)
        for each in others.KINDS
    ),
)


def everything(account: Account) -> tuple[Belonging, ...]:
    """List what carries any mark; what is somebody else's is never in it, whatever a filter let through."""
    with ThreadPoolExecutor(len(LISTINGS)) as pool:
        lists = pool.map(lambda listing: _listed(account, listing), LISTINGS)
        return tuple(each for found in lists for each in found)


def _listed(account: Account, listing: _Listing) -> list[Belonging]:
    options = {"filter": listing.filter} if listing.filter else {}
    rows = account.api.read_all(listing.service, listing.method, mask=listing.mask, **options)
    return [each for row in rows if (each := _belonging(listing, row))]


def _belonging(listing: _Listing, row: Row) -> Belonging | None:
    owner = listing.owner(row)
    if owner is None:
        return None
    bill = row.get("billingItem")
    since = dated(row.get("createDate") or (bill or {}).get("createDate"))
    cost = per_hour(bill) if bill else Decimal(0)
    alive = listing.kind != GUEST or guest_view.is_alive(row)
    by_hand = listing.cancel_by_hand(row)
    named = (listing.kind, str(row["id"]), listing.name(row), owner)
    return Belonging(*named, since, cost, is_billed=bool(bill), is_alive=alive, cancel_by_hand=by_hand)
