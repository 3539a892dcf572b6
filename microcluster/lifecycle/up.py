"""``make up``: prepare this machine, rent the cluster, follow the job to its end, report."""

import os

from core.home import Home
from microcluster.accounts.registry import account_of
from microcluster.lifecycle import accounts, commands, crash, emulated_account, pulumi_state, stacks, unsaved_work
from microcluster.lifecycle.locks import alone_on
from microcluster.setup import pulumi_install
from microcluster.setup.errors import INTERRUPTED, MISTAKE, SetupError
from microcluster.setup.progress import Stages, say

UPDATE_INTERRUPTED = (
    "\nStopped. What was ordered is in the state or is found by its mark, and it costs money. "
    "`make up STACK={stack}` continues from there, `make down STACK={stack}` cancels it."
)
JOB_GOES_ON = "`make up STACK={stack}` follows it again, `make down STACK={stack}` ends it and the bill."


def up(home: Home, stack: str) -> int:
    """Bring ``stack`` up; it can be repeated and interrupted at any point."""
    stages = Stages()
    stacks.check(stack, ordering=True)
    _check_key(home, stack)
    crash.repair(home, stack, "make up", stages)
    with alone_on(stack, "make up", home):
        prepare_account(home, stack, stages)
        if pulumi_state.known(stack, home).resources:
            unsaved_work.save_before_update(home, stack, os.environ, stages)
        of = account_of(stacks.account_of(stack).name)
        usual = f"usually 1 min here, {of.order_takes} on {of.title}"
        with stages.stage("pulumi", f"renting and preparing what stack {stack} describes ({usual})"):
            code = _update(home, stack)
        if code == 0:
            code = _follow(home, stack, stages)
    say(f"Time: {stages.summary()}.")
    if code == 0:
        say(f"Next: `make down STACK={stack}` stops the bill.")
    return code


def prepare_account(home: Home, stack: str, stages: Stages) -> None:
    """Prepare everything that Pulumi needs for the stack."""
    pulumi_install.ensure(home, stages)
    stacks.prepare((stack,), home)
    emulator = stacks.emulator_of(stack, home)
    if emulator:
        emulated_account.start(emulator, home, stages, stacks.local_image_of(stack))


def preview(home: Home, stack: str) -> int:
    """Show what `make up` would rent, without account and keys."""
    stacks.check(stack, ordering=False)
    pulumi_install.ensure(home, Stages())
    stacks.prepare((stack,), home)
    if commands.pulumi(home, "preview", "-s", stack):
        raise SetupError("The preview failed for the reason above; nothing was ordered.")
    say(f"Next: `make up STACK={stack}` rents this.")
    return 0


def _check_key(home: Home, stack: str) -> None:
    """Refuse before the engine starts where there is no key; an emulated account writes its own."""
    of = stacks.account_of(stack)
    missing = None if stacks.emulator_of(stack, home) else accounts.why_no_key(of.name, of.config_file)
    if missing:
        raise SetupError(f"Nothing was ordered: {missing} Then `make up STACK={stack}` again.", MISTAKE)


def _update(home: Home, stack: str) -> int:
    options = ("--refresh", "--run-program", "--yes", "--skip-preview", commands.NO_OUTPUTS)
    try:
        code = commands.pulumi(home, "up", *options, "-s", stack)
    except KeyboardInterrupt:
        say(UPDATE_INTERRUPTED.format(stack=stack))
        return INTERRUPTED
    if code:
        raise SetupError(f"Stack {stack} is not up, for the reason above. {_what_now(home, stack)}")
    return 0


def _what_now(home: Home, stack: str) -> str:
    if not pulumi_state.known(stack, home).held:
        return f"Nothing was ordered. When the reason is gone: `make up STACK={stack}`."
    return (
        f"What was ordered is kept and costs money: `make up STACK={stack}` tries again from there, "
        f"`make down STACK={stack}` cancels it."
    )


def _follow(home: Home, stack: str, stages: Stages) -> int:
    try:
        if (commands.status(home, stack) or {}).get("state") in ("stopped", "failed", "stalled"):
            with stages.stage("resume", "the job is not running; continuing from its latest checkpoint, if it has one"):
                commands.fab(home, "resume", stack)
        with stages.stage("job", "watching it; it keeps running after Ctrl-C"):
            code = commands.fab(home, "watch", stack)
        if code == 0:
            with stages.stage("fetch", "fetching the finished run, so that its machines can be cancelled"):
                code = commands.fab(home, "fetch", stack)
        with stages.stage("report", "the results"):
            return commands.fab(home, "report", stack) or code
    except KeyboardInterrupt:
        say(JOB_GOES_ON.format(stack=stack))
        return INTERRUPTED
