"""End of a rental: stop the job, cancel everything, check the account and print the receipt."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from microcluster.accounts.registry import AccountSettings, account_of
from microcluster.command_line.apart import run_part_apart
from microcluster.command_line.parts import run_part
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.core.plain_text import count, note, say
from microcluster.core.polling import NotReadyError
from microcluster.lifecycle import account_opening, emulated_account, pulumi, pulumi_state
from microcluster.lifecycle.emulated_account import Emulated
from microcluster.lifecycle.locks import Busy, alone_on
from microcluster.rental.account import account_and_owner, began_at, by_account, is_another, place_of
from microcluster.rental.receipt import print_receipt
from microcluster.rental.recover import recover_stack, repair
from microcluster.run import unsaved_work
from microcluster.run.job import stop_run
from microcluster.setup import engine
from microcluster.setup.environment import use_own_backend
from microcluster.setup.errors import FAILED, UNKNOWN, CommandFailed, of_the_system
from microcluster.setup.progress import Stages

STOP_LIMIT_S = 120


def take_down(home: Home, stack: str, choice: unsaved_work.Choice = None) -> int:
    """Take ``stack`` down, also after a crash or without state; exit code 1 while anything with its mark is billed.

    Where Pulumi cannot do it, the account's own calls do.
    """
    stages = Stages()
    try:
        return _by_pulumi(home, stack, choice, stages)
    except Stuck as why:
        place_of(stack)  # Refuses a stack whose account nothing names; that is then the one reason.
        say(
            f"Pulumi cannot cancel stack {stack}: {why} So the account itself is asked; the next `make up` or `make down` tidies the state."
        )
    account, owner = account_and_owner(stack)
    began = began_at(stack)
    if any(row.is_open and not row.is_kept for row in account.charges(owner)):
        unsaved_work.save_before_destroy(stack, choice, stages)
        _stop_job(stack, stages)
    return _cancel_by_account(stack, stages, began)


def _cancel_by_account(stack: str, stages: Stages, began: int | None) -> int:
    if is_another(stack, began):
        return FAILED
    account, owner = account_and_owner(stack)
    with stages.stage("cancel", "everything in the account that has the stack's mark"):
        failed = by_account(account, owner, place_of(stack).settings.time_scale)
    if failed:
        note(failed)
    return _receipt(stack, stages) or (FAILED if failed else 0)


def tidy(stack: str) -> int:
    """Take a stack down as a person does who gives up what is not fetched."""
    home = Home.of()
    use_own_backend(home)
    return take_down(home, stack, "discard")


class Stuck(Exception):
    """Pulumi cannot cancel; the message is a sentence."""


@contextmanager
def _needed_by_pulumi() -> Iterator[None]:
    try:
        yield
    except Busy:
        raise
    except (CommandFailed, config.ConfigError) as error:
        raise Stuck(str(error)) from error
    except OSError as error:
        raise Stuck(f"{of_the_system(error)}.") from error


def _by_pulumi(home: Home, stack: str, choice: unsaved_work.Choice, stages: Stages) -> int:
    with _needed_by_pulumi():
        of = config.read_account(stack)
        repair(home, stack, of, "make down", stages)
        emulator = emulated_account.of_account(of, home)
    with ExitStack() as lock:
        with _needed_by_pulumi():
            lock.enter_context(alone_on(stack, "make down", home))
            held = pulumi_state.known(stack, home)
        account = emulated_account.rented(emulator, home) if emulator else None
        no_key = account_opening.why_no_key(of.name, of.config_file) if account is None else None
        billed = bool(held.held or (no_key is None if account is None else not account.nothing))
        if not (held.resources or billed or (account and account.running)):
            return _nothing_here(home, stack, no_key)
        if no_key and held.held:
            raise CommandFailed(
                f"Nothing was canceled, and what stack {stack} holds ({count(len(held.held), 'resource')}) may be billed: {no_key} "
                f"Then `make down STACK={stack}` again."
            )
        with _needed_by_pulumi():
            engine.ensure_any(home, stages)
        is_asked = billed or bool(held.resources and not no_key)  # A queue's job is a step of Pulumi's own.
        if emulator and is_asked:
            emulated_account.answer(emulator, home, stages)
        began = began_at(stack) if is_asked else None
        if has_machines(held, account):
            unsaved_work.save_before_destroy(stack, choice, stages)
            _stop_job(stack, stages)
        code = _destroy(home, stack, of, stages) if held.resources else 0
    if no_key and not held.held and code == 0:  # What went were Pulumi's own resources; the account was not asked.
        return _nothing_here(home, stack, no_key)
    if is_asked:
        code = (
            _cancel_by_account(stack, stages, began)
            if code
            else _prove_cancelled(stack, stages, began, in_state=bool(held.resources))
        )
    if emulator:
        _stop_idle(emulator, home, stages)
    say(f"Time: {stages.summary()}.")
    again = f"`make up STACK={stack}` rents it again" if code == 0 else f"`make down STACK={stack}` tries again"
    say(f"Next: {again}.")
    return code


def has_machines(held: pulumi_state.Snapshot, account: emulated_account.Rented | None) -> bool:
    """Whether there may be a machine with a run; an emulated account knows better than the state."""
    return bool(held.held) and not (account and account.nothing)


def _nothing_here(home: Home, stack: str, no_key: str | None) -> int:
    here = f"Pulumi's state in {home.state} holds no resource of stack {stack}"
    if no_key is None:
        say(f"Nothing of stack {stack} is up: {here}.")
        return 0
    say(
        f"{here}, but the account was not read, so something with the stack's mark may be billed: {no_key} "
        f"Then `make down STACK={stack}` again."
    )
    return UNKNOWN


def _stop_job(stack: str, stages: Stages) -> None:
    """End the job, for at most the time limit: nothing over ssh may block a cancellation."""
    with stages.stage("stop", "ending the job on every node (usually 5 s)"):
        if run_part_apart(STOP_LIMIT_S, stop_run, stack=stack) != 0:
            say("    the job may still run; cancelling its machines ends it")


def _destroy(home: Home, stack: str, settings: AccountSettings, stages: Stages) -> int:
    of = account_of(settings.name)
    usual = f"usually 20 s here, {of.cancel_takes} in the {of.title} account"
    with stages.stage("pulumi", f"cancelling all that the stack rents ({usual})"):
        code = pulumi.run(home, "destroy", "--yes", "--skip-preview", "-s", stack)
    if code:
        say("    not everything was cancelled, for the reason above; the account itself is asked")
    return code


def _prove_cancelled(stack: str, stages: Stages, began: int | None, *, in_state: bool) -> int:
    """Print the receipt; cancel by the mark what the state does not know."""
    if in_state and _receipt(stack, stages) == 0:
        return 0
    if is_another(stack, began):
        return FAILED
    with stages.stage("cancel", "what has the stack's mark and is in no state"):
        code = run_part(recover_stack, stack=stack, cancel=True, yes=True)
    return _receipt(stack, stages) or code


def _receipt(stack: str, stages: Stages) -> int:
    with stages.stage("receipt", "what was rented, from the account"):
        return run_part(print_receipt, stack=stack)


def _stop_idle(emulator: Emulated, home: Home, stages: Stages) -> None:
    rented = emulated_account.rented(emulator, home)
    if not rented.running:
        return
    if not rented.nothing:
        say(
            f"The emulator keeps running: its account has {count(rented.machines, 'machine')} and "
            f"{count(rented.open_billing_items, 'open billing item')}."
        )
        return
    with stages.stage("emulator", "nothing is rented; stopping it and its registry"):
        try:
            emulated_account.stop(emulator, home)
        except (CommandFailed, NotReadyError) as error:
            say(f"    {error}")
