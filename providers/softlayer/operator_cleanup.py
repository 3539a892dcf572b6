"""What a person cancels with a verb, with the same care as the engine's destroy; no engine is behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from providers.rental import owner_mark as marks
from providers.rental import reconcile, sweep
from providers.rental.journal import Journal
from providers.rental.operation import Operation, Session
from providers.rental.receipt import Receipt
from providers.rental.waiting import Deadline
from providers.softlayer import rights, virtual_guest
from providers.softlayer.account import Account
from providers.softlayer.backend import SoftLayer

LIMIT_S = 90 * 60.0


class _Screen:
    """Says on the screen what the engine would show."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.info = self.progress = self.warn = tell


def cancel_all(
    stack: str, owner_mark: str, account: Account, time_scale: float, tell: Callable[[str], None]
) -> Receipt:
    """Cancel and remove whatever bears the mark, wait for what may still turn up, and return the receipt."""
    stop = threading.Event()
    urn = f"urn:pulumi:{stack}::microcluster::softlayer:index:Ledger::{stack}"
    session = Session(lambda: SoftLayer(account), time_scale, stop)
    op = Operation(urn, session, Deadline(LIMIT_S, stop, time_scale), _Screen(tell))
    return sweep.clean(op, op.backend(), marks.Owner(stack, owner_mark))


def journalled_guests(stack: str, owner_mark: str, account: Account) -> set[str]:
    """Return the ids of the guests that the journal knows to be ordered and not closed."""
    return set(Journal(stack, owner_mark).accepted(account.identity().account_id, virtual_guest.KIND))


def to_come(owner: marks.Owner, account: Account, time_scale: float) -> list[str]:
    """Say what may be billed, or will be, that the account does not show."""
    said = []
    backend, journal = SoftLayer(account), Journal(owner.stack, owner.mark)
    for each in journal.unresolved(account.identity().account_id):
        order = reconcile.standing(backend, journal, each)
        if order is not None:
            said.append(f"{each.name}: {order.described}, and the account shows nothing of it yet")
        elif reconcile.unsettled_s([each], reconcile.settled_s(backend), time_scale) > 0:
            said.append(f"the answer to the order of {each.name} at {each.at[:19]} UTC got lost; it may still turn up")
    waiting = backend.waiting_order(owner)
    said += [f"{waiting.described}, and the account shows no guest of it"] if waiting else []
    hidden = rights.unseen(account)
    return said + ([hidden] if hidden else [])
