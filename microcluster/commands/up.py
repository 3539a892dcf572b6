"""`fab up`: prepare this computer, rent the cluster, follow the job to its end, report; with DOWN=1 end the rental with it."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

from microcluster.accounts.registry import account_of
from microcluster.analysis.run_state import Outcome
from microcluster.command_line.command import STACK, Discard, FetchFirst, Option, StackName, local_command
from microcluster.command_line.parts import SENTENCES, run_part, sentence
from microcluster.config.stack import ConfigError, Stack, read_file
from microcluster.core.home import Home
from microcluster.core.plain_text import duration, note, say
from microcluster.guard.decision import LIVING, Limits, Verdict
from microcluster.guard.installed import say_limits, who_looks
from microcluster.guard.limits import limits_in, limits_of
from microcluster.guard.records import log_of
from microcluster.guard.texts import sentence_of
from microcluster.guard.watching import LIMIT, LOOK_EVERY_S, bring_to_its_end, follow_run, guard_of, resume_watched
from microcluster.lifecycle import account_opening, emulated_account, pulumi, pulumi_state
from microcluster.lifecycle.locks import alone_on
from microcluster.lifecycle.pulumi_state import prepare_stacks
from microcluster.rental.account import cost_of_stack
from microcluster.rental.recover import repair
from microcluster.run import unsaved_work
from microcluster.run.fetch import fetch_begun, fetch_runs
from microcluster.run.report import report_run
from microcluster.run.status import outcome_or_none
from microcluster.setup import engine
from microcluster.setup.environment import use_own_backend
from microcluster.setup.errors import FAILED, INTERRUPTED, CommandFailed, UserMistake
from microcluster.setup.progress import Stages

UPDATE_INTERRUPTED = (
    "\nStopped. What was ordered is in the state or is found by its mark, and it costs money. "
    "`make up STACK={again}` continues from there, `make down STACK={stack}` cancels it."
)
JOB_GOES_ON = "`make up STACK={stack}` follows it again, `make down STACK={stack}` ends it and the bill."
OVER = Verdict("end", "the job is over", reason="done")
NOT_FINISHED = Outcome("failed")
"""Outcome for the guard of a job that has not finished, or has never begun."""


@local_command
def up(
    stack: StackName = STACK,
    fetch_first: FetchFirst = False,
    discard: Discard = False,
    down: Annotated[
        bool,
        Option(
            "fetch and cancel everything when the job is over; after a failure in half an hour, or after guard.keepFailed"
        ),
    ] = False,
) -> int:
    """Rent the cluster of the stack, train on it, fetch a finished run and report; can be repeated and interrupted."""
    home, choice = Home.of(), unsaved_work.choice(fetch_first=fetch_first, discard=discard)
    use_own_backend(home)
    stages = Stages()
    known = read_file(stack, ordering=True)
    ends = ends_with_job(known, down=down)
    _check_key(home, known)
    repair(home, stack, known.account, "make up", stages)
    with alone_on(stack, "make up", home):
        _prepare(home, known, stages)
        say_limits(known)
        if pulumi_state.known(stack, home).resources:
            unsaved_work.save_before_update(home, stack, choice, stages)
        log_of(stack, home).forget()  # An end that was begun is not what this person wants.
        of = account_of(known.account.name)
        usual = f"usually 1 min here, {of.order_takes} in the {of.title} account"
        with stages.stage("pulumi", f"renting and preparing what stack {stack} describes ({usual})"):
            code = _update(home, known, ends=ends)
        is_up = code == 0
        if is_up:
            code = _follow(known, stages, ends=ends)
    while ends and code not in (INTERRUPTED, LIMIT):
        over = end_rental(home, known, is_up=is_up)
        if over is not None:
            return over
        with alone_on(stack, "make up", home):
            code, is_up = _follow(known, stages, ends=ends), True
    if code == LIMIT:
        return bring_to_its_end(stack)
    say(f"Time: {stages.summary()}.")
    if code == 0:
        say(f"Next: `make down STACK={stack}` stops the bill.")
    return code


def _check_key(home: Home, known: Stack) -> None:
    """Refuse before the engine starts where there is no key; an emulated account writes its own."""
    of = known.account
    missing = None if emulated_account.of_account(of, home) else account_opening.why_no_key(of.name, of.config_file)
    if missing:
        raise UserMistake(f"Nothing was ordered: {missing} Then `make up STACK={known.name}` again.")


def _prepare(home: Home, known: Stack, stages: Stages) -> None:
    """Prepare everything that Pulumi needs for the stack."""
    emulated = emulated_account.of_account(known.account, home)
    if emulated and not engine.is_built(home):
        emulated_account.install_with_engine(emulated, home, stages, known.local_image)
    engine.ensure(home, stages)
    prepare_stacks((known.name,), home)
    if emulated:
        emulated_account.start(emulated, home, stages, known.local_image)


def _update(home: Home, known: Stack, *, ends: bool) -> int:
    stack = known.name
    try:
        code = pulumi.run(home, "up", "--refresh", "--run-program", "--yes", "--skip-preview", "-s", stack)
    except KeyboardInterrupt:
        again = f"{stack} DOWN=1" if ends else stack
        say(f"{UPDATE_INTERRUPTED.format(stack=stack, again=again)} {who_looks(known, home)}".rstrip())
        return INTERRUPTED
    if code and ends and pulumi_state.known(stack, home).held:
        note(f"Stack {stack} is not up, for the reason above.")
        return FAILED
    if code:
        raise CommandFailed(f"Stack {stack} is not up, for the reason above. {_what_now(home, stack)}")
    return 0


def _what_now(home: Home, stack: str) -> str:
    if not pulumi_state.known(stack, home).held:
        return f"Nothing was ordered. When the reason is gone: `make up STACK={stack}`."
    return (
        f"What was ordered is kept and costs money: `make up STACK={stack}` tries again from there, "
        f"`make down STACK={stack}` cancels it."
    )


def _follow(known: Stack, stages: Stages, *, ends: bool) -> int:
    stack = known.name
    try:
        outcome = outcome_or_none(stack)
        if outcome and outcome.state in ("stopped", "failed", "stalled"):
            with stages.stage("resume", "the job is not running; continuing from its latest checkpoint, if it has one"):
                run_part(resume_watched, stack=stack)
        with stages.stage("job", "watching it; it keeps running after Ctrl-C"):
            code = run_part(follow_run, stack=stack)
        if code == LIMIT:
            return code
        if code == 0 and not ends:
            with stages.stage("fetch", "fetching the finished run, so that its machines can be cancelled"):
                code = run_part(fetch_runs, stack=stack)
        with stages.stage("report", "the results"):
            return run_part(report_run, stack=stack) or code
    except KeyboardInterrupt:
        goes_on = f"{JOB_GOES_ON.format(stack=stack)} {who_looks(known, Home.of())}".rstrip()
        say(_left_alone(known) if ends else goes_on)
        return INTERRUPTED


def ends_with_job(known: Stack, *, down: bool) -> bool:
    """Return whether a rental ends with its job."""
    return down or (known.guard is not None and known.guard.when_done == "cancel")


def end_rental(
    home: Home, known: Stack, *, is_up: bool = True, sleep: Callable[[float], None] = time.sleep
) -> int | None:
    """Fetch everything, then cancel it and print the receipt; return None where the job runs again meanwhile.

    What cannot be fetched whole keeps everything from being cancelled. A stack that did not come up ends as a failed job does.
    """
    stack = known.name
    try:
        outcome = outcome_or_none(stack)
        is_done = is_up and outcome is not None and outcome.state == "finished"
        if not is_done and _runs_again(home, known, sleep):
            return None
        looking = guard_of(stack, limits_in(known.guard) or Limits(), "up", opens=known.account)
        while (record := looking.end(OVER)) is None or record.unread:
            sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        log_of(stack, home).forget()  # No guard is to finish what this person has stopped.
        say(_left_alone(known))
        return INTERRUPTED
    except SENTENCES as refused:
        note(f"{sentence(str(refused))} {_bill(known)}")
        return FAILED
    is_over = record.verdict.step == "over"
    if not is_over:
        note(f"{sentence_of(stack, record)} {_bill(known)}")
    return 0 if is_done and is_over else FAILED


def _left_alone(known: Stack) -> str:
    """Say what becomes of a rental that nobody ends, and what it costs."""
    stack = known.name
    return f"\nStopped; `make up` does not cancel it any more. {_bill(known)} `make up STACK={stack} DOWN=1` does so again, `make down STACK={stack}` ends it and the bill."


def _bill(known: Stack) -> str:
    """Say what goes on costing, and who ends it where it has limits."""
    cost = cost_of_stack(known.name, known.account)
    if cost.per_hour == 0:
        return "Nothing of it is billed."
    return f"It goes on costing {cost.price}. {who_looks(known, Home.of())}".rstrip()


def _runs_again(home: Home, known: Stack, sleep: Callable[[float], None]) -> bool:
    """Keep the machines of a job that has not finished, for a look at them, until a guard would end them; say whether it runs again."""
    stack, limits, began = known.name, limits_in(known.guard) or Limits(), None
    while True:
        outcome = outcome_or_none(stack)
        if outcome and outcome.state in LIVING:
            say("The job runs again; nothing is cancelled.")
            return True
        with suppress(ConfigError):  # A person may keep the machines longer meanwhile, by the stack file.
            limits = limits_of(stack) or limits
        verdict = guard_of(stack, limits, "up", NOT_FINISHED, known.account).watch().verdict
        # By a clock of its own: the account's may run faster, and other guards may see something else.
        if verdict.step in ("end", "over") or (began and time.monotonic() - began >= limits.keep_failed_s):
            return False
        if began is None:
            _bring_home(home, known, limits.keep_failed_s)
            began = time.monotonic()
        sleep(LOOK_EVERY_S)


def _bring_home(home: Home, known: Stack, keep_s: float) -> None:
    """Bring home what the job has made, and say what a person can do meanwhile."""
    stack = known.name
    with alone_on(stack, "make up", home):  # Another guard leaves it alone meanwhile.
        is_fetched = run_part(fetch_begun, stack=stack) == 0
    made = "what it has made is here" if is_fetched else "not all that it has made could be fetched"
    say(
        f"The job has not finished; {made}. Its machines stay for {duration(keep_s)}, then they are cancelled. {_bill(known)}\n"
        f"Next: `fab logs --stack {stack}` shows why; `make up STACK={stack} DOWN=1` continues it; a higher keepFailed of microcluster:guard "
        f"in stacks/Pulumi.{stack}.yaml keeps the machines longer, Ctrl-C here until `make down STACK={stack}`."
    )
