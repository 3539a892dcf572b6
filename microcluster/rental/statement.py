"""Statements: all charges under a stack's mark, as its account says, and as kept on this computer."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pydantic import TypeAdapter

from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.shared.rental import Rental, named_rental, rentals
from microcluster.core.files import write_whole
from microcluster.core.home import PRIVATE_DIR, Home, Owner
from microcluster.core.local_name import local_name
from microcluster.core.plain_text import note
from microcluster.rental.account import account_and_owner
from microcluster.rental.holdings import known_machines
from microcluster.rental.last_reading import last_reading


@dataclass(frozen=True)
class Statement:
    """All charges under one mark, as its account said at some time.

    Attributes:
        account: its id; empty in what a version before ids has kept, which is never joined with anything.
        names: the id of the rental by the id of the charge, as far as that is known.
    """

    owner: Owner
    emulated: bool
    read: datetime
    charges: tuple[Charge, ...]
    account: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def rentals(self) -> list[Rental]:
        """All rentals, oldest first."""
        return rentals(self.charges, self.read, self.names)


STATEMENT = TypeAdapter(Statement)


def read_statement(stack: str, home: Home) -> tuple[OpenedAccount, Statement]:
    """Open the account of a stack, and read all that was ever charged under its mark."""
    account, owner = account_and_owner(stack)
    charges, now = account.charges(owner, known_machines(stack, home)), datetime.now(UTC)
    account_id, newest = account.identity().account_id, last_reading(stack, home)
    rental = named_rental(charges, now, account.terms(owner), account_id, owner)
    if not rental.id and newest and newest.rental and newest.account == account_id:
        rental = newest.rental
    names = {row.id: rental.id for row in rental.rows if rental.id}
    return account, Statement(owner, account.is_emulated, now, tuple(charges), account_id, names)


def keep(home: Home, said: Statement) -> Statement:
    """Add what was kept of earlier statements and is in no list any more, and keep all of it on this computer.

    What was open then and is listed no more has ended since: it counts until it was last seen.
    """
    known = {row.id for row in said.charges}
    earlier = [before for before in kept(home) if (before.owner, before.account) == (said.owner, said.account)]
    gone = [
        replace(row, closed=row.closed or before.read)
        for before in earlier
        for row in before.charges
        if row.id not in known
    ]
    names = {key: name for one in (*earlier, said) for key, name in one.names.items()}
    whole = replace(said, charges=tuple(sorted((*gone, *said.charges), key=lambda row: row.opened)), names=names)
    try:
        home.receipts.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
        path = home.receipts / f"{said.owner}.{local_name(said.account)}.json"
        write_whole(path, STATEMENT.dump_json(whole, indent=1) + b"\n")
    except OSError as error:  # What the account says matters more.
        note(f"The receipt cannot be kept in {home.receipts}: {error.strerror}.")
    return whole


def kept(home: Home) -> list[Statement]:
    """Return what was kept, by stack and account; a file that cannot be read counts for nothing."""
    found = []
    for path in sorted(home.receipts.glob("*.json")):
        try:
            found.append(STATEMENT.validate_json(path.read_bytes()))
        except (OSError, ValueError):
            note(
                f"{path} is no kept receipt and is left out. The account's own is printed by: fab receipt --stack STACK"
            )
    return found
