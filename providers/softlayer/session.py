"""What the operations of one provider process share, and what each of them may use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from providers.grpc.engine_log import Log
from providers.grpc.redaction import redacted
from providers.rental.journal import Journal
from providers.rental.waiting import Patience
from providers.softlayer import credentials
from providers.softlayer.account import Account
from providers.softlayer.calls import Api
from providers.softlayer.errors import ProviderError
from providers.softlayer.owner_mark import Owner


class EngineGoneError(ProviderError):
    """The engine does not live any more, so nothing new may be ordered."""


class Session:
    """The account of this provider process, opened with the first call that needs it."""

    def __init__(
        self, config_file: str | None, time_scale: float, stop: threading.Event, import_mark: str | None = None
    ) -> None:
        self.config_file = config_file
        self.time_scale = time_scale
        self.stop = stop
        self.import_mark = import_mark
        """Another stack's mark whose things may be imported."""
        self._lock = threading.Lock()
        self._account: Account | None = None
        self.claim_lock = threading.Lock()
        self.claimed: dict[Owner, float] = {}
        """The stacks for which this process may order, and when it had waited for the lists."""
        self.secrets: tuple[str, ...] = ()
        """What was read of the key's file and must not be printed."""

    def account(self) -> Account:
        """Open the account, or return the open one; a failure is asked again by the next operation."""
        with self._lock:
            if self._account is None:
                key = credentials.load(self.config_file)
                self.secrets = (key.api_key,)
                account = Account(Api(key, self.stop, self.time_scale))
                account.identity()
                self._account = account
            return self._account


class EngineLife:
    """Whether the engine that started us still lives."""

    def __init__(self) -> None:
        self.gone = threading.Event()
        self._parent = os.getppid()

    def is_over(self) -> bool:
        """Look at every sign: the end of stdin, and another parent process."""
        return self.gone.is_set() or os.getppid() != self._parent


@dataclass(frozen=True)
class Operation:
    """One operation on one resource."""

    urn: str
    session: Session
    patience: Patience
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

    def account(self, recorded_id: str | None = None) -> Account:
        """Open the account, and refuse when the state was written for another one."""
        account = self.session.account()
        live = account.identity()
        if recorded_id and recorded_id != live.account_id:
            raise ProviderError(
                f"working on {self.name}: the state belongs to account {recorded_id}, the key is for account "
                f"{live.account_id} ({live.username} at {live.endpoint}). Use the first account's key, nothing was touched."
            )
        return account

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
