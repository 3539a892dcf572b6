"""Carry out one call: log in, do what is due, call the method, then filter, page and mask its result."""

import hmac
import logging
from collections.abc import Callable
from typing import Any

from emulator.record_versions import RecordVersions
from emulator.softlayer import filters, masks, transactions, types, users
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Answer, Call, Credentials
from emulator.softlayer.fault_key import fault_key
from emulator.softlayer.faults import BAD_REQUEST, Fault, not_emulated, not_found, not_ready_to_read, unauthorized
from emulator.softlayer.services import SERVICES
from emulator.softlayer.views import Listing, View

ANY_USER = "apikey"  # the user name that goes with an IBM Cloud key, which identifies its user
LOG = logging.getLogger("emulator.softlayer.calls")


class Dispatcher:
    """Answers calls against one account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._versions = RecordVersions(account.store, lambda: account.now)

    def answer(self, call: Call, behind_s: float = 0.0) -> Answer:
        """Answer a call, or raise the fault that refuses it.

        Args:
            behind_s: how far behind a list is, of the account's seconds; the account's own lag holds if that is longer.
        """
        with self._account.lock:
            try:
                return self._carry_out(call, behind_s)
            except (AttributeError, KeyError, TypeError, ValueError, IndexError) as broken:
                # The emulator itself failed, or an argument has an unexpected shape: a fault in both cases.
                LOG.exception("%s could not be carried out", call.name)
                text = f"{call.name}: the arguments could not be read ({type(broken).__name__}: {broken})."
                raise Fault(BAD_REQUEST, text) from broken

    def _carry_out(self, call: Call, behind_s: float) -> Answer:
        account = self._account
        self._authenticate(call.credentials)
        user = users.of(account.settings, call.credentials)
        users.check(user, call)
        method = find_method(call.service, call.method)
        if transactions.advance(account):
            account.changed()
        if call.is_read:
            self._check_age(call)
            try:
                return self._shaped(method(users.seen_by(self._seen_by(call, behind_s), user), call), call)
            finally:
                account.store.unmark()
        with account.change():
            return self._shaped(method(account, call), call)

    def _seen_by(self, call: Call, behind_s: float) -> Account:
        """The account as the call sees it: lists lag."""
        account = self._account
        lag = max(account.settings.list_lag_s, behind_s)
        return account.with_tables(self._versions.tables_at(account.now - lag)) if lag and call.is_list else account

    def _check_age(self, call: Call) -> None:
        """Refuse to read an object that is too new."""
        account, fresh_s = self._account, self._account.settings.read_lag_s
        created = (
            self._versions.created_at(int(call.identifier)) if fresh_s and str(call.identifier).isdigit() else None
        )
        if created is not None and account.now - created < fresh_s:
            random = account.fault_injector.random_for("fresh", fault_key(account, call))
            raise random.choice((not_found(call.identifier), not_ready_to_read(call.name)))

    def _shaped(self, result: Any, call: Call) -> Answer:
        """The answer after filter, page and mask."""
        declared, now = types.result_of(call.service, call.method), self._account.now
        mask = masks.read_mask(call.mask, declared)
        if isinstance(result, Listing):
            tree = filters.rooted(call.filter, result.root)
            filters.check(tree, declared)
            chosen = filters.select(result.views, call.filter, result.root, now)
            if not filters.is_ordered(tree):
                chosen = self._shuffled(chosen, call)
        else:
            chosen, tree = result, filters.rooted(call.filter, None)
        narrowing = filters.Narrowing(tree, now) if masks.is_filtered(call.mask) else None
        if not isinstance(chosen, list):
            return Answer(masks.project(chosen, mask, narrowing, declared))
        page = chosen[call.offset : call.offset + call.limit] if call.limit else chosen
        return Answer(masks.project(page, mask, narrowing, declared), len(chosen))

    def _shuffled(self, views: list[View], call: Call) -> list[View]:
        """A list whose filter asks for no order: the vendor documents that its order may change."""
        return self._account.fault_injector.random_for("order", call.name).sample(views, len(views))

    def _authenticate(self, credentials: Credentials | None) -> None:
        settings = self._account.settings
        given = (credentials.username, credentials.api_key) if credentials else ("", "")
        by_key_alone = given[0] == ANY_USER
        known = given[0] if given[0] and given[0] == settings.restricted_user else settings.username
        wanted = (ANY_USER if by_key_alone else known, settings.api_key)
        if not all(hmac.compare_digest(a.encode(), b.encode()) for a, b in zip(given, wanted, strict=True)):
            raise unauthorized()


def find_method(service: str, method: str) -> Callable[[Account, Call], Any]:
    """The function behind a service's method; what is not emulated is a loud fault."""
    found = SERVICES.get(service, {}).get(method)
    if found is None:
        raise not_emulated(service, method)
    return found
