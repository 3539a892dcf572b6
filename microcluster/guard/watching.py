"""Guard of a command that follows a run: looks beside it, and brings the rental to its end when a limit is reached."""

import os
import time
from collections.abc import Callable
from contextlib import suppress

from agent.supervise.guard import CAUSES
from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.rental import CLOCKS_AGREE_S
from microcluster.analysis.run_state import Outcome
from microcluster.command_line.parts import print_json, run_part
from microcluster.core.home import Home
from microcluster.core.plain_text import BY_TIMER, note, say
from microcluster.guard import installed
from microcluster.guard.actions import RentalActions
from microcluster.guard.decision import Limits, Verdict
from microcluster.guard.enforcement import Guard
from microcluster.guard.limits import limits_known, limits_of
from microcluster.guard.records import Record, called, log_of
from microcluster.guard.texts import facts, sentence_of
from microcluster.run.cluster import cluster_of
from microcluster.run.job import resume_run
from microcluster.run.watch import watch_run
from microcluster.setup.errors import UNKNOWN, CommandFailed

LOOK_EVERY_S, MOST_LOOKS = 60, 24 * 60
LIMIT = 3
"""Exit code of following a run that ended as a limit of the stack is reached; whoever follows it ends the rental."""
UNSEEN = ("idle", "hung")
"""Reasons of ends that a watching command does not see by itself."""


class LimitReached(Exception):
    """End of following a run: a limit of its rental is reached."""


def guard_of(
    stack: str,
    limits: Limits,
    kind: str,
    outcome: Outcome | None = None,
    opens: AccountSettings | None = None,
) -> Guard:
    """Return a guard of a stack.

    Args:
        outcome, opens: state of the run and account of the stack file, where the caller has read them.
    """
    home = Home.of()
    return Guard(called(kind), limits, RentalActions(stack, home, outcome, opens), log_of(stack, home))


def look_once(stack: str, *, as_json: bool = False) -> int:
    """Look once at the limits of a stack, act, and print what was found; return its exit code."""
    home = Home.of()
    looking = guard_of(stack, limits_known(stack, home), os.environ.get(BY_TIMER, "guard"))
    before = [each for each in looking.log.records() if each.who == looking.who and each.rental and each.rental.open]
    record = looking.look()
    is_over = record.verdict.step == "over" and (before or (record.rental and record.rental.open))
    if is_over:
        with suppress(CommandFailed):  # It goes on looking at nothing, and says so in its log.
            installed.remove(stack, home)
    if as_json:
        print_json(facts(record))
    else:
        say(sentence_of(stack, record))
    return record.verdict.code


def watched(stack: str, outcome: Outcome | None) -> Verdict | None:
    """Look beside a command that watches the run, and tell the machines the limits as they are now; return the verdict.

    A limit that cannot be read, for whatever reason, keeps nobody from watching.
    """
    try:
        limits = limits_of(stack)
        return guard_of(stack, limits, "watch", outcome).watch().verdict if limits else None
    except Exception as error:  # noqa: BLE001
        note(f"guard: {error}")
        return None


def resume_watched(stack: str) -> int:
    """Continue the job of a stack with its limits as they are now: those for which the machines stopped it may be later ones."""
    cluster = cluster_of(stack)
    watched(stack, None)
    return resume_run(cluster)


def limit_watch(stack: str) -> Callable[[Outcome | None], None]:
    """Return a function that looks once a minute beside a command that watches the run, and raises LimitReached.

    The machines hold the same limits and may have stopped the program before; it looks at once then.
    """
    looked = time.monotonic()

    def hold(outcome: Outcome | None) -> None:
        nonlocal looked
        is_stopped = outcome is not None and outcome.state == "stopped" and outcome.cause in CAUSES
        if not is_stopped and time.monotonic() - looked < LOOK_EVERY_S:
            return
        verdict, looked = watched(stack, outcome), time.monotonic()
        if verdict and verdict.step == "end" and (verdict.fetch_by is not None or verdict.reason in UNSEEN):
            raise LimitReached

    return hold


def follow_run(stack: str) -> int:
    """Follow the run of a stack to its end; return LIMIT where a limit of the stack is reached before."""
    try:
        return watch_run(stack, limit_watch(stack))
    except LimitReached:
        return LIMIT


def bring_to_its_end(stack: str, sleep: Callable[[float], None] = time.sleep) -> int:
    """Look until the account can be read and no limit is about to be reached: this may be the only guard, and it goes on costing."""
    for _ in range(MOST_LOOKS):
        code = run_part(look_once, stack=stack)
        newest = log_of(stack, Home.of()).newest()
        is_unread = code == UNKNOWN or (newest is not None and newest.unread)
        if not (is_unread or _is_nearly_due(newest)):
            break
        sleep(LOOK_EVERY_S)
    return code


def _is_nearly_due(newest: Record | None) -> bool:
    """Whether the newest look was too early by what clocks differ: the machines may have stopped the program by theirs."""
    if newest is None or newest.verdict.due is None or newest.verdict.step not in ("record", "warn"):
        return False
    return (newest.verdict.due.begin - newest.at).total_seconds() <= CLOCKS_AGREE_S
