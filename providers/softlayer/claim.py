"""Which journal orders for a stack: the one that is named in the notes of the stack's ssh key in the account.

Another one in them reveals another computer, or a journal that was lost: then nothing is ordered before all that was ordered
is in the lists.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from providers.rental import clock
from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer.account import Account

KEY_MASK = "mask[id,notes]"
KNOWN_FOR_S = 10.0
"""Orders that are sent within so long of each other share one look at the key."""

Row = Mapping[str, Any]


def notes(op: Operation, owner_mark: str) -> str:
    """Write the notes of the stack's key: whose it is, and which journal orders with it."""
    owner = marks.Owner(op.stack, owner_mark)
    return f"{marks.notes(str(owner))} ordered from journal {op.journal(owner_mark).identity()}"


def is_held(op: Operation, account: Account, owner: marks.Owner, key_ids: Sequence[str], settle_s: float) -> bool:
    """Make sure, right before an order, that this journal alone orders for the stack.

    Args:
        key_ids: the keys that the order names, as a list may not show them yet.
        settle_s: how long whatever another computer ordered may be missing from the lists.

    Returns:
        False if it had to wait for the lists, so that they have to be looked at again.

    Raises:
        ProviderError: another computer has begun to order for the stack since this one did.
    """
    asked = time.monotonic()
    with op.session.claim_lock:
        key = _key(account, owner, key_ids, KNOWN_FOR_S * op.deadline.time_scale)
        if key is None:
            return True  # No key was ever uploaded, so nobody has ordered with it.
        if _is_named(op, owner, key):
            return op.session.claimed.setdefault(owner, -math.inf) <= asked
        if owner in op.session.claimed:
            raise ProviderError(_taken(op, key))
        _take_over(op, account, owner, key, settle_s)
        op.session.claimed[owner] = time.monotonic()
        return False


def _take_over(op: Operation, account: Account, owner: marks.Owner, key: Row, settle_s: float) -> None:
    account.api.ensure("Security_Ssh_Key", "editObject", {"notes": notes(op, owner.mark)}, id=int(key["id"]))
    span = f"{settle_s * op.deadline.time_scale:.0f} s"
    op.log.info(
        f"The account has this stack's ssh key {key['id']}, and this computer's journal did not order with it last: another "
        f"computer did, or the journal was lost. Waits {span}, once, until whatever was ordered is in the account's lists."
    )
    began = clock.now()

    def look() -> bool | Pending:
        passed = clock.since(began) or 0.0
        return passed > settle_s * op.deadline.time_scale or Pending(f"the first order waits {span} for the lists")

    wait_until("the account's lists", look, op.deadline, op.log.progress)
    after = _key(account, owner, [str(key["id"])])
    if after is None or not _is_named(op, owner, after):
        raise ProviderError(_taken(op, key))


def _key(account: Account, owner: marks.Owner, key_ids: Sequence[str], max_age_s: float = 0.0) -> Row | None:
    """Find the stack's key; an older one of several, so that all computers look at the same."""
    found = _ours(account, owner, key_ids, max_age_s)
    if not found:
        listed = account.api.read_all("Account", "getSshKeys", mask=KEY_MASK)
        ids = [str(each["id"]) for each in listed if marks.notes_are(each.get("notes"), owner)]
        found = _ours(account, owner, ids, max_age_s)
    return min(found, key=lambda each: int(each["id"]), default=None)


def _ours(account: Account, owner: marks.Owner, key_ids: Sequence[str], max_age_s: float) -> list[Row]:
    """Read keys by their ids, as a list may show their notes late."""
    rows = [row for each in key_ids for row in account.key.under(each, max_age_s)]
    return [row for row in rows if marks.notes_are(row.get("notes"), owner)]


def _is_named(op: Operation, owner: marks.Owner, key: Row) -> bool:
    return _journal(key) == op.journal(owner.mark).identity()


def _journal(key: Row) -> str | None:
    named = re.search(r" journal ([0-9a-f]+)$", str(key.get("notes") or ""))
    return named[1] if named else None


def _taken(op: Operation, key: Row) -> str:
    return (
        f"ordering for {op.name}: another computer orders for stack {op.stack} now (ssh key {key['id']} names its journal, "
        f"{_journal(key)}). Nothing was ordered from here. Let that one end, and run the command again."
    )
