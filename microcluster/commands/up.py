"""`fab up`: prepare this computer, rent the cluster, follow the job to its end, report."""

from core.home import Home
from core.plain_text import note, say
from microcluster.accounts.registry import account_of
from microcluster.commands import ending, unsaved_work
from microcluster.commands.command import (
    FAILED,
    INTERRUPTED,
    STACK,
    CommandFailed,
    UserMistake,
    local_command,
    run_part,
)
from microcluster.commands.fetch import fetch
from microcluster.commands.guard import book_of, bring_to_its_end, say_limits, who_looks
from microcluster.commands.recover import repair
from microcluster.commands.report import report
from microcluster.commands.resume import resume
from microcluster.commands.setup import prepare_stacks
from microcluster.commands.status import outcome_or_none
from microcluster.commands.watch import LIMIT, watch
from microcluster.config import stack as config
from microcluster.lifecycle import accounts, emulated_account, pulumi, pulumi_state
from microcluster.lifecycle.locks import alone_on
from microcluster.setup import engine
from microcluster.setup.environment import use_own_backend
from microcluster.setup.progress import Stages

UPDATE_INTERRUPTED = (
    "\nStopped. What was ordered is in the state or is found by its mark, and it costs money. "
    "`make up STACK={again}` continues from there, `make down STACK={stack}` cancels it."
)
JOB_GOES_ON = "`make up STACK={stack}` follows it again, `make down STACK={stack}` ends it and the bill."


@local_command
def up(stack: str = STACK, fetch_first: bool = False, discard: bool = False, down: bool = False) -> int:
    """Rent the cluster of the stack, train on it, fetch a finished run and report; can be repeated and interrupted."""
    home = Home.of()
    use_own_backend(home)
    return bring_up(home, stack, unsaved_work.choice(fetch_first=fetch_first, discard=discard), down=down)


def bring_up(home: Home, stack: str, choice: unsaved_work.Choice = None, *, down: bool = False) -> int:
    """Bring ``stack`` up.

    Args:
        choice: what a person has said of a run that would be lost.
        down: whether everything is cancelled when the job is over, as a guard of the stack file may say too.
    """
    stages = Stages()
    known = config.read_file(stack, ordering=True)
    ends = ending.with_job(known, down=down)
    _check_key(home, stack)
    repair(home, stack, "make up", stages)
    with alone_on(stack, "make up", home):
        _prepare(home, stack, stages)
        say_limits(known)
        if pulumi_state.known(stack, home).resources:
            unsaved_work.save_before_update(home, stack, choice, stages)
        book_of(stack, home).forget()  # An end that was begun is not what this person wants.
        of = account_of(config.read_account(stack).name)
        usual = f"usually 1 min here, {of.order_takes} on {of.title}"
        with stages.stage("pulumi", f"renting and preparing what stack {stack} describes ({usual})"):
            code = _update(home, stack, ends=ends)
        is_up = code == 0
        if is_up:
            code = _follow(stack, stages, ends=ends)
    while ends and code not in (INTERRUPTED, LIMIT):
        over = ending.end(home, stack, is_up=is_up)
        if over is not None:
            return over
        with alone_on(stack, "make up", home):
            code, is_up = _follow(stack, stages, ends=ends), True
    if code == LIMIT:
        return bring_to_its_end(stack)
    say(f"Time: {stages.summary()}.")
    if code == 0:
        say(f"Next: `make down STACK={stack}` stops the bill.")
    return code


def _check_key(home: Home, stack: str) -> None:
    """Refuse before the engine starts where there is no key; an emulated account writes its own."""
    of = config.read_account(stack)
    missing = None if emulated_account.of_stack(stack, home) else accounts.why_no_key(of.name, of.config_file)
    if missing:
        raise UserMistake(f"Nothing was ordered: {missing} Then `make up STACK={stack}` again.")


def _prepare(home: Home, stack: str, stages: Stages) -> None:
    """Prepare everything that Pulumi needs for the stack."""
    engine.ensure(home, stages)
    prepare_stacks((stack,), home)
    emulated = emulated_account.of_stack(stack, home)
    if emulated:
        emulated_account.start(emulated, home, stages, config.read_file(stack).local_image)


def _update(home: Home, stack: str, *, ends: bool) -> int:
    try:
        code = pulumi.run(home, "up", "--refresh", "--run-program", "--yes", "--skip-preview", "-s", stack)
    except KeyboardInterrupt:
        again = f"{stack} DOWN=1" if ends else stack
        say(f"{UPDATE_INTERRUPTED.format(stack=stack, again=again)} {who_looks(stack, home)}".rstrip())
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


def _follow(stack: str, stages: Stages, *, ends: bool) -> int:
    try:
        outcome = outcome_or_none(stack)
        if outcome and outcome.state in ("stopped", "failed", "stalled"):
            with stages.stage("resume", "the job is not running; continuing from its latest checkpoint, if it has one"):
                run_part(resume, stack=stack)
        with stages.stage("job", "watching it; it keeps running after Ctrl-C"):
            code = run_part(watch, stack=stack)
        if code == LIMIT:
            return code
        if code == 0 and not ends:
            with stages.stage("fetch", "fetching the finished run, so that its machines can be cancelled"):
                code = run_part(fetch, stack=stack)
        with stages.stage("report", "the results"):
            return run_part(report, stack=stack) or code
    except KeyboardInterrupt:
        goes_on = f"{JOB_GOES_ON.format(stack=stack)} {who_looks(stack, Home.of())}".rstrip()
        say(ending.left_alone(stack) if ends else goes_on)
        return INTERRUPTED
