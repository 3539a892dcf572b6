"""`fab down`: stop the job, cancel everything, check the account and print the receipt."""

from core.home import Home
from core.plain_text import count, say
from core.polling import NotReadyError
from microcluster.accounts.registry import account_of
from microcluster.commands import unsaved_work
from microcluster.commands.apart import apart
from microcluster.commands.command_line import FAILED, STACK, CommandFailed, local_command, run_part
from microcluster.commands.receipt import receipt
from microcluster.commands.recover import recover, repair
from microcluster.commands.stop import stop
from microcluster.config import stack as config
from microcluster.lifecycle import account_opening, emulated_account, pulumi, pulumi_state
from microcluster.lifecycle.emulated_account import Emulated
from microcluster.lifecycle.locks import alone_on
from microcluster.setup import engine
from microcluster.setup.environment import use_own_backend
from microcluster.setup.progress import Stages

STOP_LIMIT_S = 120


@local_command
def down(stack: str = STACK, fetch_first: bool = False, discard: bool = False) -> int:
    """Stop the job, cancel everything, and print the receipt; exit code 1 while anything of the stack is billed."""
    home = Home.of()
    use_own_backend(home)
    return take_down(home, stack, unsaved_work.choice(fetch_first=fetch_first, discard=discard))


def take_down(home: Home, stack: str, choice: unsaved_work.Choice = None) -> int:
    """Take ``stack`` down, also after a crash or without state; exit code 1 while anything with its mark is billed."""
    stages = Stages()
    of = config.read_account(stack)
    repair(home, stack, "make down", stages)
    emulator = emulated_account.of_stack(stack, home)
    with alone_on(stack, "make down", home):
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
        engine.ensure_any(home, stages)
        is_asked = billed or bool(held.resources and not no_key)  # A queue's job is a step of Pulumi's own.
        if emulator and is_asked:
            emulated_account.answer(emulator, home, stages)
        if has_machines(held, account):
            unsaved_work.save_before_destroy(stack, choice, stages)
            _stop_job(stack, stages)
        code = _destroy(home, stack, stages) if held.resources else 0
    if no_key and not held.held and code == 0:  # What went were Pulumi's own resources; the account was not asked.
        return _nothing_here(home, stack, no_key)
    if is_asked:
        code = code or _prove_cancelled(stack, stages, in_state=bool(held.resources))
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
    return FAILED


def _stop_job(stack: str, stages: Stages) -> None:
    """End the job, for at most the time limit: nothing over ssh may block a cancellation."""
    with stages.stage("stop", "ending the job on every node (usually 5 s)"):
        if apart(STOP_LIMIT_S, stop, stack=stack) != 0:
            say("    the job may still run; cancelling its machines ends it")


def _destroy(home: Home, stack: str, stages: Stages) -> int:
    of = account_of(config.read_account(stack).name)
    usual = f"usually 20 s here, {of.cancel_takes} on {of.title}"
    with stages.stage("pulumi", f"cancelling all that the stack rents ({usual})"):
        code = pulumi.run(home, "destroy", "--yes", "--skip-preview", "-s", stack)
    if code:
        say("    not everything was cancelled, for the reason above; the receipt lists what is still billed")
        _receipt(stack, stages)
    return code


def _prove_cancelled(stack: str, stages: Stages, *, in_state: bool) -> int:
    """Print the receipt; cancel by the mark what the state does not know."""
    if in_state and _receipt(stack, stages) == 0:
        return 0
    with stages.stage("cancel", "what has the stack's mark and is in no state"):
        code = run_part(recover, stack=stack, cancel=True, yes=True)
    return _receipt(stack, stages) or code


def _receipt(stack: str, stages: Stages) -> int:
    with stages.stage("receipt", "what was rented, from the account"):
        return run_part(receipt, stack=stack)


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
