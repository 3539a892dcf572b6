"""`fab guard` and `fab extend`: hold a rental to its limits, and move them."""

from decimal import Decimal
from functools import partial
from typing import Annotated

from microcluster.accounts.shared.account import Extension
from microcluster.command_line.command import STACK, AsJson, Mark, Option, StackName, command
from microcluster.config import stack as config
from microcluster.core.home import Home, stack_of
from microcluster.core.plain_text import note, say
from microcluster.guard import installed
from microcluster.guard.limits import limits_known
from microcluster.guard.records import log_of
from microcluster.guard.texts import sentence_of
from microcluster.guard.watching import guard_of, look_once
from microcluster.lifecycle import pulumi_state
from microcluster.rental.account import account_and_owner, take_up
from microcluster.setup.environment import use_own_backend
from microcluster.setup.errors import CommandFailed, UserMistake

MOST_MORE = 100_000
"""Hours or dollars of one extension."""


@command
def guard(  # noqa: PLR0917 - Fabric makes an option of each
    stack: StackName = STACK,
    install: Annotated[bool, Option("look every minute from now on, by systemd or cron")] = False,
    remove: Annotated[bool, Option("stop looking every minute")] = False,
    status: Annotated[bool, Option("show when each guard looked last, from where, and what it will do next")] = False,
    as_json: AsJson = False,
    mark: Mark = "",
) -> int:
    """Look once at the stack's limits and act; 0 all is well, 1 alarm, 3 something cannot be read. --install looks every minute."""
    home = Home.of()
    use_own_backend(home)
    if mark:
        take_up(stack, mark)
    act = partial(_guard, home=home, install=install, remove=remove, status=status, as_json=as_json)
    has_it, is_stack = stack_of(home.keys / stack), stack in config.stacks()
    if has_it == stack or (is_stack and (install or remove or status)):
        return act(stack)
    note(f"Stack {stack} is called {has_it} now; what guards the old name goes on with it.")
    code = act(has_it)
    # A timer of before the rename says a name that a new stack may have by now.
    return max(code, act(stack)) if is_stack and pulumi_state.known(stack, home).resources else code


def _guard(stack: str, home: Home, *, install: bool, remove: bool, status: bool, as_json: bool) -> int:
    if remove:
        was_there = installed.remove(stack, home)
        say(f"stack {stack}: {'the timer is removed' if was_there else 'there was no timer'}")
        return 0
    if status:
        return installed.show(stack, home, as_json=as_json)
    if install:
        limits_known(stack, home)
        return installed.install(stack, home)
    return look_once(stack, as_json=as_json)


@command
def extend(
    stack: StackName = STACK,
    hours: Annotated[float, Option("hours more (of a queue: node hours)")] = 0.0,
    dollars: Annotated[float, Option("dollars more")] = 0.0,
) -> int:
    """Let a rental last longer, or cost more, than its stack file says; every guard reads it in the account."""
    home = Home.of()
    use_own_backend(home)
    account, owner = account_and_owner(stack)
    limits = limits_known(stack, home).held_by(account.terms(owner))
    more = Extension(Decimal(str(hours)), Decimal(str(dollars)))
    if not (0 <= hours <= MOST_MORE and 0 <= dollars <= MOST_MORE and more):
        raise UserMistake(
            f"Say how much more, up to {MOST_MORE:,}: fab extend --hours 6 --stack {stack}, or --dollars 50."
        )
    if (hours and limits.lease_h is None) or (dollars and limits.budget is None):
        raise UserMistake(
            f"There is nothing to extend: hours are of guard.lease and dollars of guard.budget, which stacks/Pulumi.{stack}.yaml had not when "
            f"it was rented. Add them there, then run: make up STACK={stack}"
        )
    newest = log_of(stack, home).newest()
    if newest and newest.begun and newest.begun.has_cancelled:
        raise CommandFailed(
            f"Too late: the guard of stack {stack} cancelled its machines at {newest.begun.at:%H:%M} UTC. "
            f"`make up STACK={stack}` rents again."
        )
    whole = account.extension(owner, account.extension(owner) + more)
    say(f"stack {stack}: {more} more; {whole} in all beside its stack file, recorded in the account")
    record = guard_of(stack, limits, "extend").watch()  # The machines have to know before the run goes on.
    say(sentence_of(stack, record))
    return 0
