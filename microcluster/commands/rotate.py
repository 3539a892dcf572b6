"""`fab rotate`: make a stack new ssh keys; what is rented keeps the key that it was ordered with."""

from microcluster.accounts.registry import AccountSettings, account_of
from microcluster.command_line.command import STACK, StackName, command
from microcluster.command_line.parts import SENTENCES, sentence, suggest
from microcluster.config import stack as config
from microcluster.core import stack_keys
from microcluster.core.home import Home
from microcluster.core.plain_text import note, say
from microcluster.lifecycle import emulated_account, locks
from microcluster.rental.statement import read_statement
from microcluster.run.cluster import find_cluster
from microcluster.setup.errors import UNKNOWN


@command
def rotate(stack: StackName = STACK) -> int:
    """Make new ssh keys for the stack; a rental keeps its own until it ends, and the owner mark stays."""
    settings, home = config.read_account(stack), Home.of()
    of = account_of(settings.name)
    folder = home.folder_of(stack)
    with locks.alone_on(stack, "fab rotate", home):
        locks.refuse_living_pulumi(stack, "fab rotate", home)
        if stack_keys.prepare(folder, stack):
            say("The key that waited for its first use is replaced.")
        owner = config.keys_of(stack).owner
        try:
            rented = _rented(stack, settings, home)
        except SENTENCES as error:
            note(
                f"{sentence(str(error))}\nSo nobody knows whether something is rented with the old key of stack {stack}. The new one "
                f"waits in {folder / stack_keys.WAITING}. Once the account answers, run again: fab rotate --stack {stack}"
            )
            return UNKNOWN
        if not rented:
            stack_keys.renew(owner)
    say(
        f"The key of the {of.title} account is no part of this: docs/leaked-key.md says where it is changed. {of.key.advice}."
    )
    if rented:
        waits = f"Stack {stack} has a new ssh key. Until these are gone it waits, as they know the old one:"
        say("\n  ".join([waits, *rented]))
        suggest(f"`make down STACK={stack}` ends the rental, removes the old key and puts the new one in its place.")
    else:
        say(f"Stack {stack} has new ssh keys in {folder}, and the old ones are removed. Its mark stays {owner.mark}.")
    return 0


def _rented(stack: str, settings: AccountSettings, home: Home) -> list[str]:
    """List what may know the stack's key: all that bears its mark, what no list shows yet, and what the state says is up.

    Raises:
        ProviderError: the account does not answer, or does not show its user everything.
    """
    cluster = find_cluster(stack)
    up = [f"{each.name} ({each.guest_id})" for each in cluster.hosts] if cluster else []
    emulator = emulated_account.of_account(settings, home)
    if emulator and emulated_account.rented(emulator, home).nothing:
        return up
    account, said = read_statement(stack, home)
    found = [each for each in account.everything() if each.owner == said.owner and each.is_alive and not each.is_kept]
    billed = [f"{row.id} ({row.host})" for row in said.charges if row.is_open and not row.is_kept]
    to_come = account.to_come(said.owner, found, settings.time_scale)
    known = [str(each) for each in found] or billed or to_come or up
    if not known:
        account.check_sees_all(f"looking for what knows the ssh key of stack {stack}")
    return known
