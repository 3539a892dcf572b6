"""Everything in an account that carries a mark of microcluster: found in the account's own lists, and taken out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError
from providers.rental.waiting import Deadline
from providers.softlayer import cancel_guest, guest_view, others, security_group, ssh_key
from providers.softlayer.account import Account
from providers.softlayer.billing import dated
from providers.softlayer.cached_lists import GUEST_MASK
from providers.softlayer.prices import per_hour

WORKERS = 16
GUEST, KEY, GROUP = "guest", "key", "group"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Belonging:
    """One thing of one stack, as the account shows it."""

    kind: str
    id: str
    name: str
    owner: marks.Owner
    since: datetime | None
    per_hour: Decimal
    is_billed: bool
    is_alive: bool
    """False for a guest that is cancelled and listed for a while; one that waits for approval is alive and not billed."""
    cancel_by_hand: str = ""
    """The command by which a person cancels it, for what we do not cancel."""

    @property
    def label(self) -> str:
        """Name it shortly; the numbers of two kinds may be the same."""
        return f"{self.kind}/{self.id}"

    def __str__(self) -> str:
        """Name it for a person."""
        return f"{self.label} ({self.name})"


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


def under(account: Account, owner: marks.Owner) -> tuple[Belonging, ...]:
    """List what carries exactly this stack and mark."""
    return tuple(each for each in everything(account) if owner.has(each.owner))


def of_other_stacks(found: Iterable[Belonging], owner: marks.Owner) -> list[str]:
    """Say what carries the same mark for another stack: a copied folder of keys does that."""
    return [
        f"{each} bears mark {owner.mark} too and is of stack {each.owner.stack}: a copied folder of keys. It is left alone; "
        "give one of the stacks keys of its own"
        for each in found
        if each.owner.mark == owner.mark and not owner.has(each.owner)
    ]


def remove_all(
    account: Account, things: Iterable[Belonging], deadline: Deadline, tell: Callable[[str], None]
) -> list[str]:
    """Cancel or remove all, each with its proof; return the sentences of those that failed: one does not keep the rest."""
    things = tuple(things)
    first = [each for each in things if each.kind == GUEST]  # They hold on to everything else.
    rest = [each for each in things if each.kind != GUEST]
    failures: list[str] = []
    for batch in (first, rest):
        with ThreadPoolExecutor(WORKERS) as pool:
            tried = pool.map(lambda each: _attempt(account, each, deadline, tell), batch)
            failures += [failure for failure in tried if failure]
    return failures


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
    return Belonging(listing.kind, str(row["id"]), listing.name(row), owner, since, cost, bool(bill), alive, by_hand)


def _attempt(account: Account, thing: Belonging, deadline: Deadline, tell: Callable[[str], None]) -> str | None:
    try:
        _remove(account, thing, deadline, lambda message: tell(f"{thing}: {message}"))
    except ProviderError as error:
        return str(error)
    return None


def _remove(account: Account, thing: Belonging, deadline: Deadline, tell: Callable[[str], None]) -> None:
    owner = thing.owner
    if thing.kind == GUEST:
        cancel_guest.close(account, thing.id, owner, deadline, tell)
    elif thing.kind == KEY:
        ssh_key.remove(account, thing.id, owner)
    elif thing.kind == GROUP:
        security_group.remove(account, thing.id, owner, deadline, tell)
    else:
        raise ProviderError(
            f"cancelling {thing}: microcluster orders no such thing and cancels none. If it is yours, cancel it with "
            f"'{thing.cancel_by_hand}' and run the command again; if not, take the mark {owner.mark} off it."
        )
