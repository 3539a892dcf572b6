"""The one way through which every call passes: who calls, what is due, the method, then filter, page and mask."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable
from typing import Any

from . import filters, masks, transactions
from .account import Account
from .calls import SERVICE_PREFIX, Answer, Call, Credentials
from .faults import Fault, not_emulated, unauthorised
from .services import SERVICES
from .views import Listing

LOG = logging.getLogger("emulator.calls")
READS = ("get", "is", "verify", "generateOrderTemplate", "advancedSearch", "check", "find")  # they change nothing


class Dispatcher:
    """Answers calls against one account."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def answer(self, call: Call) -> Answer:
        """Answer a call, or raise the fault that refuses it."""
        try:
            self._authenticate(call.credentials)
            method = find_method(call.service, call.method)
            with self._account.lock:
                return self._carry_out(method, call)
        except Fault as fault:
            LOG.info("%s::%s(%s): %s %s", call.service, call.method, call.identifier or "", fault.code, fault.text)
            raise

    def _carry_out(self, method: Callable[[Account, Call], Any], call: Call) -> Answer:
        account = self._account
        if transactions.advance(account):
            account.changed()
        if call.method.startswith(READS):
            return self._shaped(method(account, call), call)
        try:
            answer = self._shaped(method(account, call), call)
        except BaseException:
            account.store.rollback()
            raise
        if account.store.flush():
            account.changed()
        return answer

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
    name = service if service.startswith(SERVICE_PREFIX) else SERVICE_PREFIX + service
    found = SERVICES.get(name, {}).get(method)
    if found is None:
        raise not_emulated(name, method)
    return found
