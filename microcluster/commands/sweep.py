"""`fab sweep`: list and cancel what microcluster left in the account and no living stack of this user owns."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from microcluster.accounts.shared.account import Resource
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.command_line.command import STACK, AsJson, Mark, Option, StackName, Yes, command
from microcluster.command_line.parts import agrees, print_json, suggest
from microcluster.config import stack as config
from microcluster.core.home import PUBLIC_KEY, Home, stack_of
from microcluster.core.plain_text import count, note, say
from microcluster.lifecycle import pulumi_state
from microcluster.lifecycle.account_opening import open_account
from microcluster.rental import holdings
from microcluster.setup.errors import FAILED, CommandFailed, UserMistake


@command
def sweep(
    stack: StackName = STACK,
    ids: Annotated[
        Sequence[str] | None, Option("cancel this id of the list; may be given several times", name="id")
    ] = None,
    mark: Mark = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """List what no living stack of yours owns in the account of STACK; cancel what --id or --mark names."""
    named = config.read_account(stack)
    account = open_account(named.name, named.config_file)
    found = orphaned(account.everything(), living_marks(Home.of()))
    if not found:
        account.check_sees_all("looking for what is left over")
    if as_json:
        print_json([_facts(each) for each in found])
        return FAILED if found else 0
    chosen = choose(found, ids or (), mark)
    if not chosen:
        return _show(found, account, stack)
    holdings.show(chosen, "To be cancelled; this cannot be undone:", {})
    if not (yes or agrees(f"Cancel these {len(chosen)}?")):
        note("Nothing was cancelled. To skip this question, add --yes.")
        return FAILED
    return _cancel(account, chosen)


def living_marks(home: Home) -> frozenset[str]:
    """Return the marks of the stacks whose key is here and whose state holds something or cannot be read."""
    with_key = {stack_of(path.parent) for path in home.keys.glob(f"*/{PUBLIC_KEY}")}
    # Until `fab recover` has mended a broken state nobody can say that it holds nothing.
    states = {name: pulumi_state.readable(name, home) for name in with_key}
    return frozenset(config.keys_of(name).owner.mark for name, state in states.items() if state is None or state.held)


def orphaned(found: Iterable[Resource], living: frozenset[str]) -> tuple[Resource, ...]:
    """Return what belongs to no living stack, without cancelled guests, which stay listed for a while."""
    return tuple(each for each in found if each.is_alive and each.owner.mark not in living)


def choose(found: Sequence[Resource], ids: Sequence[str], mark: str) -> list[Resource]:
    """Return what --id and --mark name; refuse all when one of them is not in the list."""
    if mark and mark not in [each.owner.mark for each in found]:
        raise UserMistake(f"Nothing in the list has the mark {mark}. See the list: fab sweep")
    named = [_named(found, word) for word in ids]
    return [each for each in found if each in named or each.owner.mark == mark]


def _named(found: Sequence[Resource], word: str) -> Resource:
    meant = [each for each in found if word in (each.id, each.label)]
    if len(meant) == 1:
        return meant[0]
    problem = f"is one of {', '.join(map(str, meant))}" if meant else "is not in the list"
    raise UserMistake(f"--id {word} {problem}; nothing was cancelled. See the list: fab sweep")


def _show(found: Sequence[Resource], account: OpenedAccount, stack: str) -> int:
    identity = account.identity()
    if not found:
        say(f"account {identity.account_id} ({identity.username}): nothing is left over")
        return 0
    holdings.show(found, f"Belonging to no living stack of yours, in account {identity.account_id}", {})
    say(
        f"{count(len(found), 'thing')}, {holdings.per_hour(found)}. Another person may own them: ask before you cancel."
    )
    suggest(
        f"`fab sweep --stack {stack} --id {found[0].label}` or `fab sweep --stack {stack} --mark {found[0].owner.mark}` cancels."
    )
    return FAILED


def _cancel(account: OpenedAccount, chosen: Sequence[Resource]) -> int:
    failures = account.remove(chosen, note)
    if failures:
        raise CommandFailed("\n".join(failures))
    say(f"cancelled and proved: {', '.join(each.label for each in chosen)}")
    return 0


def _facts(each: Resource) -> dict[str, object]:
    return {
        "id": each.label,
        "name": each.name,
        "stack": each.owner.stack,
        "mark": each.owner.mark,
        "since": each.since,
        "per_hour": each.per_hour,
        "billed": each.is_billed,
    }
