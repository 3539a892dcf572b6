"""The account of any stack with all that it has charged, and what a stack that is up costs now."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pydantic import TypeAdapter

from core.files import write_whole
from core.home import PRIVATE_DIR, Home, Owner
from core.plain_text import note
from microcluster.accounts.registry import DEFAULT
from microcluster.commands.command_line import SENTENCES, CommandFailed, sentence
from microcluster.commands.holdings import known_machines
from microcluster.commands.stack_outputs import find_cluster
from microcluster.config import stack as config
from microcluster.guard.rental import last_rental
from microcluster.jobs.cluster_facts import ClusterFacts, ClusterFactsError
from microcluster.lifecycle.account_opening import open_account
from microcluster.planning.run_cost import Cost
from providers.rental.opened_account import OpenedAccount
from providers.rental.receipt import Charge


@dataclass(frozen=True)
class Statement:
    """All charges under one mark, as its account said at some time."""

    owner: Owner
    emulated: bool
    read: datetime
    charges: tuple[Charge, ...]


STATEMENT = TypeAdapter(Statement)


def read_statement(stack: str, home: Home) -> tuple[OpenedAccount, Statement]:
    """Open the account of a stack, and read all that was ever charged under its mark."""
    account, owner = account_and_owner(stack)
    charges = account.charges(owner, known_machines(stack, home))
    return account, Statement(owner, account.is_emulated, datetime.now(UTC), tuple(charges))


def keep(home: Home, said: Statement) -> Statement:
    """Add what was kept of earlier statements and is in no list any more, and keep all of it on this computer.

    What was open then and is listed no more has ended since: it counts until it was last seen.
    """
    known = {row.id for row in said.charges}
    gone = [
        replace(row, closed=row.closed or before.read)
        for before in kept(home)
        if before.owner == said.owner
        for row in before.charges
        if row.id not in known
    ]
    whole = replace(said, charges=tuple(sorted((*gone, *said.charges), key=lambda row: row.opened)))
    try:
        home.receipts.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
        write_whole(home.receipts / f"{said.owner}.json", STATEMENT.dump_json(whole, indent=1) + b"\n")
    except OSError as error:  # What the account says matters more.
        note(f"The receipt cannot be kept in {home.receipts}: {error.strerror}.")
    return whole


def kept(home: Home) -> list[Statement]:
    """Return what was kept, by stack; a file that cannot be read counts for nothing."""
    found = []
    for path in sorted(home.receipts.glob("*.json")):
        try:
            found.append(STATEMENT.validate_json(path.read_bytes()))
        except (OSError, ValueError):
            note(
                f"{path} is no kept receipt and is left out. The account's own is printed by: fab receipt --stack STACK"
            )
    return found


def cost_of(cluster: ClusterFacts, say: Callable[[str], None] = note) -> Cost:
    """Return the cost of a stack that is up, as its account says."""
    return _cost(lambda: (account_of(cluster), cluster.owner), say)


def cost_of_stack(stack: str) -> Cost:
    """Return what a stack costs, whether it is up or not, as its account says."""
    return _cost(lambda: account_and_owner(stack), note)


def _cost(opened: Callable[[], tuple[OpenedAccount, Owner]], say: Callable[[str], None]) -> Cost:
    account, now = None, datetime.now(UTC)
    try:
        account, owner = opened()
        rental = last_rental(account.charges_listed(owner), now)
    except SENTENCES as error:
        say(sentence(str(error)))
        return Cost(None, None, emulated=bool(account and account.is_emulated))
    oldest = min((row for row in rental.open + rental.kept if row.hourly), key=lambda row: row.opened, default=None)
    next_hour = oldest.price.paid_until(oldest.opened, now).astimezone(UTC) if oldest else None
    return Cost(rental.billed_per_hour, rental.cost, rental.currency, next_hour, account.is_emulated)


def account_of(cluster: ClusterFacts) -> OpenedAccount:
    """Open the account in which a stack that is up was ordered."""
    return open_account(cluster.account or DEFAULT, cluster.account_config_file)


def account_and_owner(stack: str) -> tuple[OpenedAccount, Owner]:
    """Open the stack's account, which its outputs name, or its stack file where there are none."""
    try:
        cluster = find_cluster(stack)
    except (CommandFailed, ClusterFactsError):  # The receipt matters most when the state is lost.
        cluster = None
    if cluster:
        return account_of(cluster), cluster.owner
    named = config.read_account(stack)
    return open_account(named.name, named.config_file), config.owner(stack).bearing
