"""The claim: an object of the account whose name says which journal orders for a stack.

It is a startup script that no machine runs. The oldest one counts, and only once the account's list shows it: a list that
shows it also shows every older one, so that of two computers which begin at the same time one sees the other.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from providers.paperspace import names
from providers.paperspace.account import SCRIPTS, Account
from providers.rental import reconcile
from providers.rental.backend import Backend, Claim, Found, OrderRequest, Thing
from providers.rental.idempotent_order import adopt_or_order
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.reconcile import settled_s
from providers.rental.waiting import Pending, wait_until

KIND = "claim"
NAME = re.compile(r"claim-(?P<journal>[0-9a-f]{8})")
TEXT = "#!/bin/sh\n# The name of this script says which computer orders for the stack; no machine runs it.\n"

Row = Mapping[str, Any]


def hold(op: Operation, backend: Backend, owner: Owner) -> None:
    """Make the stack's claim unless there is one, and return once the list shows one."""
    with backend.claim_lock:
        if read(backend.account, owner, 0.0) is not None:
            return
        name = names.full(f"claim-{op.journal(owner.mark).identity()}", owner)
        # Whatever is ordered first makes it: in the journal it has a name of its own.
        of_stack = replace(op, urn=f"{op.urn.rsplit('::', 1)[0]}::{KIND}")
        request = OrderRequest(
            KIND, owner, f"the claim of {owner}", name, {"name": name, "script": TEXT}, is_named=False
        )
        adopt_or_order(of_stack, backend, request)

        def look() -> bool | Pending:
            is_listed = read(backend.account, owner, 0.0) is not None
            return is_listed or Pending("waits for the account's list of startup scripts, which has to show the claim")

        wait_until(f"the claim of {owner}", look, op.deadline.within(2 * settled_s(backend)), op.log.progress)


def look(op: Operation, backend: Backend, owner: Owner) -> Found:
    """Return the claim that counts, or else the one that this journal knows to be made and no list shows yet."""
    listed = _oldest(backend.account, owner, 0.0)
    if listed is not None:
        return thing(listed)
    fresh = reconcile.fresh(op, backend, owner.mark, KIND)
    found = [backend.find(KIND, each, owner, fresh=True) for each in sorted(fresh)]
    return next((each for each in found if isinstance(each, Pending) or (each and each.owner == owner)), None)


def thing(row: Row) -> Thing:
    """Read a claim."""
    return Thing(
        KIND, str(row["id"]), str(row.get("name")), names.owner_of(row.get("name")), f"claim {row['id']}", row=row
    )


def read(account: Account, owner: Owner, max_age_s: float) -> Claim | None:
    """Read the claim that counts, from the list."""
    found = _oldest(account, owner, max_age_s)
    return Claim(str(found["id"]), journal_of(found)) if found else None


def write(account: Account, owner: Owner, claim: Claim) -> None:
    """Write another journal's name into a claim."""
    account.api.ensure("PUT", f"{SCRIPTS}/{claim.object_id}", {"name": names.full(f"claim-{claim.journal}", owner)})


def journal_of(row: Row) -> str | None:
    """Read the journal in a script's name; None where the script is no claim."""
    named = names.read(row.get("name"))
    found = NAME.fullmatch(named.label) if named else None
    return found["journal"] if found else None


def _oldest(account: Account, owner: Owner, max_age_s: float) -> Row | None:
    found = [row for row in account.under(SCRIPTS, owner, max_age_s) if journal_of(row)]
    return min(found, key=lambda row: (str(row.get("dtCreated")), str(row["id"])), default=None)
