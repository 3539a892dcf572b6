"""``make down``: stop the job, cancel everything, read the account back and print the receipt."""

from __future__ import annotations

from pathlib import Path

from setup import local_account, prepare, stacks, state
from setup.environment import FAB, PULUMI, Home, child_environment
from setup.errors import SetupError
from setup.locks import alone_on
from setup.process import run_in_view
from setup.progress import Stages, say
from setup.up import NO_OUTPUTS, in_pulumis_words

STOP_LIMIT_S = 120


def down(home: Home, stack: str) -> int:
    """Take ``stack`` down; exit code 1 while anything with its mark is still billed."""
    stages = Stages()
    with alone_on(stack, "down", home):
        prepare.prepare_engine(home, stages)
        emulator = stacks.emulator_of(stack, home)
        held = state.holdings(stack, home)
        account = local_account.rented(emulator, home) if emulator else None
        billed = held.rented or (account and not account.nothing)
        if not (held.resources or billed or (account and account.running)):
            say(f"Nothing of stack {stack} is up: Pulumi's state in {home.state} holds no resource of it.")
            return 0
        state.refuse_stale_lock(stack, home)
        if emulator and account and billed and not account.running:
            local_account.start(emulator, home, stages)
        if held.rented:
            _stop_job(home, stack, stages)
        code = _destroy(home, stack, stages) if held.resources else 0
        if billed:
            code = _receipt(home, stack, stages) or code
        if emulator:
            _stop_idle(emulator, home, stages)
    say(f"Time: {stages.summary()}.")
    say(f"Next: {_next(code, stack, in_state=bool(held.resources))}")
    return code


def _next(code: int, stack: str, *, in_state: bool) -> str:
    if code == 0:
        return f"`make up STACK={stack}` rents it again."
    if in_state:
        return f"`make down STACK={stack}` tries again."
    return (
        f"`make up STACK={stack}` takes up again what bears its mark, for Pulumi's state holds nothing of it any more; "
        f"then `make down STACK={stack}` cancels it."
    )


def _stop_job(home: Home, stack: str, stages: Stages) -> None:
    with stages.stage("stop", "ending the job on every node (usually 5 s)"):
        if run_in_view((str(FAB), "stop", "--stack", stack), child_environment(home), STOP_LIMIT_S):
            say("    the job could not be proven stopped; going on, for cancelling its machines ends it too")


def _destroy(home: Home, stack: str, stages: Stages) -> int:
    with stages.stage("pulumi", "cancelling all that the stack rents (usually 20 s here, 5 min on SoftLayer)"):
        argv = (str(PULUMI), "destroy", "--yes", "--skip-preview", "-s", stack, NO_OUTPUTS)
        code = in_pulumis_words(argv, home)
    if code:
        say("    not everything could be cancelled, for the reason above; the receipt tells what is still billed")
    return code


def _receipt(home: Home, stack: str, stages: Stages) -> int:
    with stages.stage("receipt", "what was rented, read back from the account"):
        return run_in_view((str(FAB), "receipt", "--stack", stack), child_environment(home))


def _stop_idle(emulator: Path, home: Home, stages: Stages) -> None:
    rented = local_account.rented(emulator, home)
    if not rented.running:
        return
    if not rented.nothing:
        say(
            f"The emulator goes on: {rented.machines} machines and {rented.open_billing_items} open billing items "
            "are left in its account."
        )
        return
    with stages.stage("emulator", "nothing is rented; stopping it and its registry"):
        try:
            local_account.stop(emulator, home)
        except SetupError as error:
            say(f"    {error}")
