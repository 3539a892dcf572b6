"""The account of any stack with all that it has charged, and what a stack that is up costs now."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter

from microcluster.accounts.registry import DEFAULT, AccountSettings
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.receipt import Charge
from microcluster.commands.command_line import SENTENCES, CommandFailed, UserMistake, sentence
from microcluster.commands.holdings import known_machines
from microcluster.commands.stack_outputs import find_cluster
from microcluster.config import stack as config
from microcluster.core.files import write_whole
from microcluster.core.home import PRIVATE_DIR, Home, Owner, owner_in_word
from microcluster.core.local_name import local_name
from microcluster.core.plain_text import note
from microcluster.guard.records import Book
from microcluster.guard.rental import Rental, last_rental, named_rental, rentals
from microcluster.jobs.cluster_facts import ClusterFacts, ClusterFactsError
from microcluster.lifecycle import pulumi_state
from microcluster.lifecycle.account_opening import open_account
from microcluster.planning.run_cost import Cost


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
    account_id, newest = account.identity().account_id, book_of(stack, home).newest()
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
    """Open the stack's account: that of its outputs, of its stack file where there are none, or of what a guard wrote down of it.

    Raises:
        AccountError: the key opens another account than the one in which the stack rents.
    """
    settings, owner = place_of(stack)
    account = open_account(settings.name, settings.config_file)
    recorded, live = recorded_account(stack), account.identity()
    if recorded and recorded != live.account_id:
        raise AccountError(
            f"reading what stack {stack} rents: it rents in account {recorded}, and the key is for account {live.account_id} "
            f"({live.username} at {live.endpoint}). Nothing is known of it from there. Use the key of account {recorded}."
        )
    return account, owner


def place_of(stack: str) -> tuple[AccountSettings, Owner]:
    """Return what opens the stack's account, and whose the stack is; nothing of it needs Pulumi or a sound stack file."""
    try:
        cluster = find_cluster(stack)
    except (CommandFailed, ClusterFactsError, config.ConfigError):  # The account matters most when the state is lost.
        cluster = None
    newest, guarded = book_of(stack, Home.of()).newest(), guarded_owner(stack)
    try:
        settings = config.read_account(stack)
    except config.ConfigError:
        if not (cluster or guarded or (newest and newest.opens)):
            raise
        settings = newest.opens if newest and newest.opens else AccountSettings(DEFAULT)
    if cluster:
        rented = replace(settings, name=cluster.account or DEFAULT, config_file=cluster.account_config_file)
        # A home that was moved took the key's file along; the stack file names it as it is now.
        has_moved = rented.config_file and not Path(rented.config_file).exists() and rented.name == settings.name
        return settings if has_moved else rented, cluster.owner
    return settings, guarded or config.owner(stack).bearing


def guarded_owner(stack: str) -> Owner | None:
    """Return what the stack's things bear where this computer only guards what another one has ordered."""
    file, state = Home.of().guarded / stack, pulumi_state.readable(stack, Home.of())
    return (
        None
        if (state and state.held) or not file.is_file()
        else owner_in_word(file.read_text(errors="replace").strip())
    )


def take_up(stack: str, mark: str) -> None:
    """Let this computer guard what another one has ordered under a mark, with the account's key alone.

    Raises:
        UserMistake: the account shows nothing with the mark that is the stack's.
    """
    home, settings = Home.of(), AccountSettings(DEFAULT)
    with suppress(config.ConfigError):
        settings = config.read_account(stack)
    account = open_account(settings.name, settings.config_file)
    found = {each.owner for each in account.everything() if each.owner and each.owner.mark == mark and each.is_alive}
    owner = next((each for each in found if each.stack == stack), None)
    if owner is None:
        stacks = f"things of the stacks {', '.join(sorted(each.stack for each in found))}" if found else "nothing"
        raise UserMistake(
            f"Guarding mark {mark}: account {account.identity().account_id} shows {stacks} with it. Stack and mark stand in the domain of each machine; "
            f"a stack of another account than {settings.name} needs its stack file here. Then: fab guard --stack STACK --mark MARK"
        )
    home.guarded.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
    write_whole(home.guarded / stack, f"{owner}\n", 0o600)


def recorded_account(stack: str) -> str | None:
    """Return the id of the account in which the stack rents, by Pulumi's state or by what a guard wrote down; None where neither says it."""
    state = pulumi_state.readable(stack, Home.of())
    if state and state.account_id:
        return state.account_id
    newest = book_of(stack, Home.of()).newest()
    return newest.account or None if newest and newest.lives else None


def book_of(stack: str, home: Home) -> Book:
    """Return what the guards of a stack have found: it lies beside its keys, which all who may act share."""
    return Book(home.folder_of(stack) / "guards")
