"""The key by which fault injection counts calls: a name, because ids depend on the order of threads."""

import json

from emulator.paperspace.account import Account
from emulator.paperspace.operations import Call


def about(account: Account, call: Call) -> str | None:
    """The name of the object that a call is about, as far as it has one."""
    ref = call.path.get("id")
    if ref is None:
        return call.input.get("name") if call.is_create else call.path.get("ip")
    named = (
        each.name
        for table in account.store.tables.values()
        for each in table.read_all()
        if getattr(each, "ref", None) == ref and hasattr(each, "name")
    )
    return next(named, None)


def fault_key(account: Account, call: Call) -> str:
    """What tells the calls of one operation apart: the object that they are about, or the filter of a list."""
    return about(account, call) or json.dumps(dict(call.input), sort_keys=True, default=str)
