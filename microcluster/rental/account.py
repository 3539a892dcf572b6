"""Account of a stack, up or not: what opens it, whose the stack is, and the last way to cancel everything."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from microcluster.accounts.registry import DEFAULT, AccountSettings
from microcluster.accounts.shared.errors import AccountError, ProviderError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.command_line.parts import SENTENCES
from microcluster.config import stack as config
from microcluster.core.files import write_whole
from microcluster.core.home import PRIVATE_DIR, Home, Owner, owner_in_word
from microcluster.core.plain_text import count, note, say
from microcluster.jobs.cluster_facts import ClusterFactsError
from microcluster.lifecycle import pulumi_state
from microcluster.lifecycle.account_opening import open_account
from microcluster.planning.run_cost import Cost
from microcluster.rental.last_reading import last_reading
from microcluster.run.cluster import cost_by, find_cluster
from microcluster.setup.errors import CommandFailed, UserMistake


class Place(NamedTuple):
    """Account in which a stack rents, and the owner of all that it rents there."""

    settings: AccountSettings
    owner: Owner


def account_and_owner(stack: str, settings: AccountSettings | None = None) -> tuple[OpenedAccount, Owner]:
    """Open the stack's account: that of its outputs, of its stack file where there are none, or of what a guard wrote down of it.

    Args:
        settings: the account of the stack file, where that has been read.

    Raises:
        AccountError: the key opens another account than the one in which the stack rents.
    """
    settings, owner = place_of(stack, settings)
    account = open_account(settings.name, settings.config_file)
    recorded, live = recorded_account(stack), account.identity()
    if recorded and recorded != live.account_id:
        raise AccountError(
            f"reading what stack {stack} rents: it rents in account {recorded}, and the key is for account {live.account_id} "
            f"({live.username} at {live.endpoint}). Nothing is known of it from there. Use the key of account {recorded}."
        )
    return account, owner


def place_of(stack: str, settings: AccountSettings | None = None) -> Place:
    """Return what opens the stack's account, and whose the stack is; nothing of it needs Pulumi or a sound stack file."""
    try:
        cluster = find_cluster(stack)
    except (CommandFailed, ClusterFactsError, config.ConfigError):  # The account matters most when the state is lost.
        cluster = None
    newest, guarded = last_reading(stack, Home.of()), guarded_owner(stack)
    try:
        settings = settings or config.read_account(stack)
    except config.ConfigError:
        if not (cluster or guarded or (newest and newest.opens)):
            raise
        settings = newest.opens if newest and newest.opens else AccountSettings(DEFAULT)
    if cluster:
        rented = replace(settings, name=cluster.account or DEFAULT, config_file=cluster.account_config_file)
        # A home that was moved took the key's file along; the stack file names it as it is now.
        has_moved = rented.config_file and not Path(rented.config_file).exists() and rented.name == settings.name
        return Place(settings if has_moved else rented, cluster.owner)
    return Place(settings, guarded or config.keys_of(stack).owner)


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
    newest = last_reading(stack, Home.of())
    return newest.account or None if newest and newest.lives else None


def cost_of_stack(stack: str, settings: AccountSettings | None = None) -> Cost:
    """Return what a stack costs, whether it is up or not, as its account says."""
    return cost_by(lambda: account_and_owner(stack, settings), note)


def began_at(stack: str) -> int | None:
    """Return the second of the first order of the stack's rental, which tells it from every other; None where nothing says it."""
    with suppress(*SENTENCES):
        account, owner = account_and_owner(stack)
        terms = account.terms(owner)
        return terms.first_order if terms else None
    return None


def is_another(stack: str, began: int | None) -> bool:
    """Say whether another rental took the place of one since: this computer may have slept, and another one ordered."""
    newest = began_at(stack) if began else None
    if newest in (None, began):
        return False
    note(f"Stack {stack} was rented again meanwhile, perhaps from another computer: that is left alone.")
    return True


def by_account(account: OpenedAccount, owner: Owner, time_scale: float) -> str:
    """Cancel all that bears stack and mark, by the account's own calls; return why it is not proven, or an empty text.

    The last rung: it needs no engine, no state, no lock, no room on a disk and no machine that answers.
    """
    try:
        bill = account.cancel_all(owner, time_scale, note)
    except ProviderError as error:
        return str(error)
    say(f"cancelled, and proved by the account: {count(bill.open_count, 'open billing item')}")
    return ""
