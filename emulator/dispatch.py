"""The one way through which every call passes: who calls, what is due, the method, then filter, page and mask."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import filters, masks, transactions
from .account import Account
from .calls import SERVICE_PREFIX, Answer, Call, Credentials
from .faults import BAD_REQUEST, Fault, not_emulated, unauthorised
from .history import History
from .services import SERVICES
from .timeline import Timeline
from .views import Listing

LOG = logging.getLogger("emulator.calls")
READS = ("get", "is", "verify", "generateOrderTemplate", "advancedSearch", "check", "find")  # they change nothing


class Dispatcher:
    """Answers calls against one account."""

    def __init__(self, account: Account, history: History | None = None) -> None:
        self._account = account
        self._history = history
        self._timeline = Timeline(lambda: account.now, account.store.written())
        account.store.watchers.append(self._timeline.changed)
        if history:
            account.store.watchers.append(history.changed)

    def answer(self, call: Call) -> Answer:
        """Answer a call, or raise the fault that refuses it."""
        if not call.service.startswith(SERVICE_PREFIX):
            call = replace(call, service=SERVICE_PREFIX + call.service)
        with self._account.lock:
            self._account.step()
            try:
                answer = self._understood(call)
            except Fault as fault:
                LOG.info("%s::%s(%s): %s %s", call.service, call.method, call.identifier or "", fault.code, fault.text)
                self._remember(call, fault)
                raise
            self._remember(call, None)
            return answer

    def _remember(self, call: Call, fault: Fault | None) -> None:
        if self._history:
            self._history.call(call, fault)

    def _understood(self, call: Call) -> Answer:
        """Carry a call out; a failure of the emulator itself or an argument of a strange shape becomes a loud fault."""
        try:
            return self._carry_out(call)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as broken:
            LOG.exception("%s::%s could not be carried out", call.service, call.method)
            text = (
                f"{call.service}::{call.method}: the arguments could not be read ({type(broken).__name__}: {broken})."
            )
            raise Fault(BAD_REQUEST, text) from broken

    def _carry_out(self, call: Call) -> Answer:
        account = self._account
        self._authenticate(call.credentials)
        method = find_method(call.service, call.method)
        if transactions.advance(account):
            account.changed()
        if call.method.startswith(READS):
            try:
                return self._shaped(method(self._seen_by(call), call), call)
            finally:
                account.store.unmark()
        try:
            answer = self._shaped(method(account, call), call)
            changed = account.store.flush()
        except BaseException:
            account.store.rollback()
            raise
        if changed:
            account.changed()
        return answer

    def _seen_by(self, call: Call) -> Account:
        """The account as the call sees it: lists lag behind."""
        account, lag = self._account, self._account.settings.list_lag_s
        is_list = call.service == "SoftLayer_Account" or call.method == "getAllObjects"
        return self._timeline.account_at(account, account.now - lag) if lag and is_list else account

    def _shaped(self, result: Any, call: Call) -> Answer:
        mask = masks.parse_mask(call.mask)
        if not isinstance(result, Listing):
            return Answer(masks.project(result, mask), len(result) if isinstance(result, list) else None)
        chosen = filters.select(result.views, call.filter, result.root, self._account.now)
        page = chosen[call.offset : call.offset + call.limit] if call.limit else chosen
        return Answer([masks.project(view, mask) for view in page], len(chosen))

    def _authenticate(self, credentials: Credentials | None) -> None:
        settings = self._account.settings
        given = (credentials.username, credentials.api_key) if credentials else ("", "")
        wanted = (settings.username, settings.api_key)
        if not all(hmac.compare_digest(a.encode(), b.encode()) for a, b in zip(given, wanted, strict=True)):
            raise unauthorised()


def find_method(service: str, method: str) -> Callable[[Account, Call], Any]:
    """The function behind a service's method; what is not emulated is a loud fault."""
    found = SERVICES.get(service, {}).get(method)
    if found is None:
        raise not_emulated(service, method)
    return found
