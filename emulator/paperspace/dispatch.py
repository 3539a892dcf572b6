"""Carry out one call: check the key, do what is due, call the operation, save, and page a list."""

from typing import Any

from emulator.fault_injection import REORDERED, STALE, InjectedFault
from emulator.paperspace import keys, lifecycle, paging
from emulator.paperspace.account import Account
from emulator.paperspace.errors import not_found
from emulator.paperspace.operations import Call
from emulator.record_versions import RecordVersions


class Dispatcher:
    """Answers calls against one account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._versions = RecordVersions(account.store, lambda: account.now)

    def answer(self, call: Call, injected: InjectedFault) -> Any:
        """Answer a call, or raise the refusal; the caller holds the account's lock."""
        account = self._account
        role = keys.check(account, call)
        if lifecycle.advance(account):
            account.changed()
        if call.is_read:
            self._check_age(call)
            behind_s = injected.seconds if injected.kind == STALE else 0.0
            try:
                found = call.operation.handler(keys.seen_by(self._seen_by(call, behind_s), role), call)
                return self._paged(found, call, injected) if call.is_list else found
            finally:
                account.store.unmark()
        with account.change():
            return call.operation.handler(account, call)

    def _paged(self, views: list[dict[str, Any]], call: Call, injected: InjectedFault) -> dict[str, Any]:
        """A page; where the fault asks for it, each page comes out of another order."""
        reordered = injected.kind == REORDERED
        shuffle = self._account.fault_injector.random_for("order", call.name) if reordered else None
        return paging.page(views, call, self._account.settings.page_size, shuffle)

    def _seen_by(self, call: Call, behind_s: float) -> Account:
        """The account as the call sees it: lists lag."""
        account = self._account
        lag = max(account.settings.list_lag_s, behind_s)
        return account.with_tables(self._versions.tables_at(account.now - lag)) if lag and call.is_list else account

    def _check_age(self, call: Call) -> None:
        """Refuse to read an object that is too new."""
        account, ref = self._account, call.path.get("id")
        fresh_s = account.settings.read_lag_s
        if not fresh_s or ref is None:
            return
        for table in account.store.tables.values():
            for each in table.read_all():
                if getattr(each, "ref", None) == ref and account.now - getattr(each, "created", 0.0) < fresh_s:
                    raise not_found("Object", ref)
