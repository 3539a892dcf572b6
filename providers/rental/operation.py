"""What the operations of one provider process share, and what each of them may use."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from providers.rental.account import Market
from providers.rental.errors import EngineGoneError, ProviderError
from providers.rental.journal import Journal
from providers.rental.owner_mark import Owner
from providers.rental.redaction import redacted
from providers.rental.waiting import Deadline

Answer = TypeVar("Answer")


def answered(limit_s: float, ask: Callable[[], Answer]) -> Answer:
    """Return an answer that comes in time; a call that is late goes on behind and hinders nobody.

    Raises:
        ProviderError: there is none yet, or what the call raised.
    """
    done: Future[Answer] = Future()

    def call() -> None:
        try:
            done.set_result(ask())
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is waited for
            done.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    try:
        return done.result(limit_s)
    except TimeoutError as late:
        raise ProviderError(f"it did not answer within {limit_s:g} s.") from late


class Log(Protocol):
    """What a person sees of one resource while an operation runs."""

    def info(self, message: str) -> None:
        """Keep a message under the resource in the command's summary."""

    def progress(self, message: str) -> None:
        """Show what is going on right now."""

    def warn(self, message: str) -> None:
        """Show a warning."""


class Session:
    """The account of this provider process, opened with the first call that needs it."""

    def __init__(self, open_account: Callable[[], Market], time_scale: float, stop: threading.Event) -> None:
        self.time_scale = time_scale
        self.stop = stop
        self.claim_lock = threading.Lock()
        self.claimed: dict[Owner, float] = {}
        """The stacks for which this process may order, and when it had waited for the lists."""
        self.secrets: tuple[str, ...] = ()
        self._open = open_account
        self._lock = threading.Lock()
        self._market: Market | None = None

    def market(self) -> Any:
        """Open the account, or return the open one; after a failure the next operation tries again."""
        with self._lock:
            if self._market is None:
                market = self._open()
                self.secrets = market.secrets
                market.whoami()
                self._market = market
            return self._market


@dataclass(frozen=True)
class Operation:
    """One operation on one resource."""

    urn: str
    session: Session
    deadline: Deadline
    log: Log
    engine_lives: Callable[[], bool] = lambda: True

    @property
    def stack(self) -> str:
        """The stack's name, from the URN."""
        return self.urn.split("::")[0].removeprefix("urn:pulumi:")

    @property
    def name(self) -> str:
        """The resource's logical name, from the URN."""
        return self.urn.rsplit("::", 1)[-1]

    def market(self, recorded_id: str | None = None) -> Any:
        """Open the account, and refuse when the state was written for another one."""
        market = self.session.market()
        live = market.whoami()
        if recorded_id and recorded_id != live.account_id:
            raise ProviderError(
                f"working on {self.name}: the state belongs to account {recorded_id}, the key is for account "
                f"{live.account_id} ({live.username} at {live.endpoint}). Use the first account's key, nothing was touched."
            )
        return market

    def journal(self, owner_mark: str) -> Journal:
        """Return the journal of the stack and the mark."""
        return Journal(self.stack, owner_mark)

    def sentence(self, error: Exception) -> str:
        """Say what went wrong; what nobody foresaw may quote a key."""
        if isinstance(error, ProviderError):
            return str(error)
        return f"{redacted(f'{type(error).__name__}: {error}', *self.session.secrets)}. This is a bug."

    def before_order(self, what: str) -> None:
        """Refuse to order anything for an engine that is gone or has asked to stop."""
        if not self.engine_lives() or self.session.stop.is_set():
            raise EngineGoneError(
                f"ordering {what}: the engine is gone or stops, so nothing was ordered. Run the command again."
            )
