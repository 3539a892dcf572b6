"""What a person cancels with a verb, with the same care as the engine's destroy; no engine is behind it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from providers.softlayer import placing, provision, sweep
from providers.softlayer.account import Account
from providers.softlayer.charges import Receipt
from providers.softlayer.engine_log import EngineLog, Log
from providers.softlayer.journal import Intent, Journal
from providers.softlayer.session import Operation, Session
from providers.softlayer.waiting import Patience

LIMIT_S = 90 * 60.0


class _Screen(EngineLog):
    """Says on the screen what the engine would show."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__("")
        self._tell = tell

    def say(self, urn: str, message: str, severity: int = 0, *, passing: bool = False) -> None:
        self._tell(message)


def cancel_all(
    stack: str, owner_mark: str, account: Account, time_scale: float, tell: Callable[[str], None]
) -> Receipt:
    """Cancel and remove whatever bears the mark, wait for what may still turn up, and return the receipt."""
    stop = threading.Event()
    urn = f"urn:pulumi:{stack}::microcluster::softlayer:index:Ledger::{stack}"
    log = Log(_Screen(tell), urn)
    op = Operation(urn, Session(None, time_scale, stop), Patience(LIMIT_S, stop, time_scale), log)
    return sweep.clean(op, account, owner_mark)


def journalled_guests(stack: str, owner_mark: str, account: Account) -> set[str]:
    """Return the ids of the guests that the journal knows to be ordered and not closed."""
    return set(Journal(stack, owner_mark).accepted(account.identity().account_id, provision.KIND))


def unanswered(stack: str, owner_mark: str, account: Account, time_scale: float) -> list[Intent]:
    """Return the orders whose answer got lost so recently that what they made may still turn up."""
    found = Journal(stack, owner_mark).unresolved(account.identity().account_id)
    return [each for each in found if placing.unsettled_s([each], time_scale) > 0]
