"""Methods that only read: all objects, one by its id, and each of its relations."""

from collections.abc import Callable
from functools import partial
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, find
from emulator.softlayer.queries import Listing, View


def every(rows: Callable[[Account], list[View]], account: Account, call: Call) -> Listing:
    """All objects of this kind."""
    return Listing(rows(account))


def one(view: Callable[[Account, Any], View], table: str, account: Account, call: Call) -> View:
    """The object of this id."""
    return view(account, find(getattr(account.store, table), call))


def relations(get: Callable[[Account, Call], View], *names: str) -> dict[str, Callable[[Account, Call], Any]]:
    """Methods for relations of an object, as the vendor has one for each."""
    return {f"get{name[0].upper()}{name[1:]}": partial(_relation, get, name) for name in names}


def _relation(get: Callable[[Account, Call], View], name: str, account: Account, call: Call) -> Any:
    """This relation of what `getObject` shows; a list is filtered below its name."""
    found = get(account, call).relations[name]()
    return Listing(found, name) if isinstance(found, list) else found
