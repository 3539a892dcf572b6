"""Repair of a stack after a crash: no process, no lock, a readable state and no unfinished order are left."""

import dataclasses

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Resource
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.command_line.parts import agrees, run_part, suggest
from microcluster.config import stack as config
from microcluster.core.home import Home, Owner
from microcluster.core.plain_text import count, note, say
from microcluster.lifecycle import emulated_account, locks, orphans, pulumi, pulumi_state
from microcluster.rental import holdings
from microcluster.rental.account import account_and_owner
from microcluster.rental.holdings import Compared, with_state
from microcluster.setup import engine
from microcluster.setup.errors import FAILED, CommandFailed
from microcluster.setup.progress import Stages

REFRESH_LIMIT_S = 1800
QUICK_S = 60


def recover_stack(stack: str, *, yes: bool = False, cancel: bool = False) -> int:
    """Repair processes, lock, state and unfinished orders of a stack; machines stay unless ``cancel`` is given."""
    settings, home = config.read_account(stack), Home.of()
    locks.refuse_living_pulumi(stack, "fab recover", home)
    if not (yes or _agrees(stack, home, cancel=cancel)):  # Nobody waits for a question.
        note(f"Nothing was changed. To skip this question: fab recover --stack {stack} --yes")
        return FAILED
    with locks.alone_on(stack, "fab recover", home):
        locks.refuse_living_pulumi(stack, "fab recover", home)
        _end_orphans(stack, home)
        _repair_state(stack, home)
        account, owner = account_and_owner(stack, settings)
        _show(account, owner, stack, home)
        if cancel:
            bill = account.cancel_all(owner, settings.time_scale, note)
            say(f"cancelled, and proved by the account: {count(bill.open_count, 'open billing item')}")
        _refresh(stack, home)
        return _prove(account, owner, stack, home)


def repair(home: Home, stack: str, settings: AccountSettings, command: str, stages: Stages) -> None:
    """Recover the stack before ``command`` if a crash left a lock, or a broken or missing state.

    Raises:
        CommandFailed: somebody may work on the stack, or the repair failed.
    """
    locks.refuse_living_pulumi(stack, command, home)
    locks.refuse_unreadable_lock(stack, home)
    if not needs_repair(stack, home):
        return
    engine.ensure_any(home, stages)
    emulator = emulated_account.of_account(settings, home)
    if emulator and emulator.state.exists():
        emulated_account.answer(emulator, home, stages)
    with stages.stage("recover", "repairing first: a command was killed, or the state is damaged"):
        if run_part(recover_stack, stack=stack, yes=True):
            raise CommandFailed(
                f"Nothing was ordered or canceled, for the reason above. `{command} STACK={stack}` tries again."
            )


def needs_repair(stack: str, home: Home) -> bool:
    """Whether a crash left a lock, or a broken or missing state."""
    if pulumi_state.readable(stack, home) is None:
        return True
    gone = not pulumi_state.path_of(stack, home).exists() and any(pulumi_state.older_copies(stack, home))
    return bool(gone or locks.stale_lock(stack, home))


def _agrees(stack: str, home: Home, *, cancel: bool) -> bool:
    say(
        f"This ends the processes that a killed command left on stack {stack}, releases its lock and refreshes the state."
    )
    for process in orphans.find(stack, home):
        say(f"  still running: {process}")
    if cancel:
        say("  it also cancels everything in the account that has the stack's mark; this cannot be undone")
    return agrees("Go on?")


def _end_orphans(stack: str, home: Home) -> None:
    found = orphans.find(stack, home)
    killed = orphans.end(found)
    for process in found:
        say(f"ended: {process}" + (", which had to be killed" if process in killed else ""))
    if left := orphans.find(stack, home):
        raise CommandFailed(f"ending {', '.join(map(str, left))}: started meanwhile. Run the same command again.")
    say("processes: none of a dead pulumi is left")


def _repair_state(stack: str, home: Home) -> None:
    for line in pulumi_state.repair(stack, home) or [f"state of stack {stack}: readable"]:
        say(line)
    held = locks.pulumi_locks(stack, home)
    if held:
        _pulumi(stack, home, "cancel", "--yes", stack, limit_s=QUICK_S)
    if left := locks.pulumi_locks(stack, home):
        raise CommandFailed(
            f"releasing the lock of stack {stack}: process {left[0].pid} has taken it meanwhile. Wait for it."
        )
    was = f"; process {held[0].pid} had left it at {held[0].since}" if held else ""
    say(f"lock: free{was}")


def _show(account: OpenedAccount, owner: Owner, stack: str, home: Home) -> None:
    found, compared = _compare(account, owner, stack, home)
    unknown = {each.label: "not in the state" for each in compared.account_only}
    if found:
        holdings.show(found, f"In the account with mark {owner.mark}: {holdings.per_hour(found)}", unknown)
    else:
        say(f"account: holds nothing with mark {owner.mark}")
    beside = dataclasses.replace(compared, account_only=())
    say(f"unknown to Pulumi's state: {len(unknown)} of {len(found)}")
    if not beside.agrees:
        say("\n".join(holdings.differences(beside, stack)))


def _compare(account: OpenedAccount, owner: Owner, stack: str, home: Home) -> tuple[list[Resource], Compared]:
    found = [each for each in account.everything() if each.owner == owner and each.is_alive]
    return found, with_state(found, stack, home)


def _refresh(stack: str, home: Home) -> None:
    """Refresh the state from the account, and drop unfinished orders, which the next up finds by their mark."""
    state = pulumi_state.read(stack, home)
    if not (state.resources or state.pending_creates):
        say("state: empty, nothing to refresh")
        return
    words = ("refresh", "--clear-pending-creates", "--yes", "--skip-preview", "-s", stack)
    _pulumi(stack, home, *words, limit_s=REFRESH_LIMIT_S)
    say(f"state: refreshed; unfinished orders forgotten: {state.pending_creates}")


def _pulumi(stack: str, home: Home, *words: str, limit_s: float) -> None:
    done = pulumi.answer(home, *words, limit_s=limit_s)
    if done.returncode:
        raise CommandFailed(f"pulumi {words[0]} of stack {stack}: {pulumi.reason(done)}. Run the same command again.")


def _prove(account: OpenedAccount, owner: Owner, stack: str, home: Home) -> int:
    found, compared = _compare(account, owner, stack, home)
    if compared.broken or compared.under_way or locks.pulumi_locks(stack, home) or orphans.find(stack, home):
        raise CommandFailed(f"recovering stack {stack}: another command is working on it. Run the same command again.")
    say("proved: no process, no lock, a readable state, no unfinished order")
    suggest(_next(found, compared, stack))
    return 0


def _next(found: list[Resource], compared: Compared, stack: str) -> str:
    if not found:
        return f"`make up STACK={stack}` rents again."
    taken = "adopts what the state does not know" if compared.account_only else "goes on"
    return f"`make up STACK={stack}` {taken}, `make down STACK={stack}` cancels everything."
