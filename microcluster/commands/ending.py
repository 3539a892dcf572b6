"""How `make up DOWN=1` ends a rental with its job: fetch, cancel, receipt; a failed job keeps its machines for a while."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from core.home import Home
from core.plain_text import duration, note, say
from microcluster.analysis.run_state import Outcome
from microcluster.commands.command import FAILED, INTERRUPTED, SENTENCES, run_part, run_part_within, sentence
from microcluster.commands.down import STOP_LIMIT_S, take_down
from microcluster.commands.fetch import fetch, unfetched_runs
from microcluster.commands.guard import LimitReached, bring_to_its_end, limit_watch, who_looks
from microcluster.commands.job import stop
from microcluster.commands.money import cost_of_stack
from microcluster.commands.stack_outputs import find_cluster
from microcluster.commands.status import outcome_or_none
from microcluster.config import stack as config
from microcluster.config.model import Guard
from microcluster.lifecycle.locks import alone_on
from microcluster.setup.progress import Stages

LOOK_EVERY_S = 15.0
AT_WORK = ("preparing", "running")
NOT_CANCELLED = (
    "Nothing was cancelled, for what is only on the machines would be lost. {bill} `make down STACK={stack} FETCH=1` tries again "
    "and cancels, `make down STACK={stack} DISCARD=1` cancels without what cannot be fetched."
)


def keep_failed_s(known: config.Stack, *, down: bool) -> float | None:
    """Return how long the machines of a failed job stay; None where the rental does not end with its job."""
    limits = known.guard
    if not down and (limits is None or limits.when_done != "cancel"):
        return None
    return (limits or Guard.model_construct()).keep_failed * 60


def end(  # noqa: PLR0913 - tests do not sleep
    home: Home,
    stack: str,
    stages: Stages,
    keep_s: float,
    *,
    is_up: bool = True,
    sleep: Callable[[float], None] = time.sleep,
) -> int | None:
    """Fetch everything, then cancel it and print the receipt; return None where the job runs again meanwhile.

    What cannot be fetched whole keeps everything from being cancelled. A stack that did not come up ends as a failed job does.
    """
    try:
        outcome = outcome_or_none(stack)
        failed = not is_up or outcome is None or outcome.state != "finished"
        with alone_on(stack, "make up", home):  # Another guard waits with a job that is done.
            is_fetched = _fetched(stack, stages)
        if not is_fetched:
            note(NOT_CANCELLED.format(bill=bill(stack), stack=stack))
            return FAILED
        if failed:
            outcome = _kept(keep_s, stack, outcome, sleep)
            if outcome and outcome.state in AT_WORK:
                return None
            if outcome and outcome.state == "stalled":  # Only one that has stopped saves what it has.
                run_part_within(STOP_LIMIT_S, stop, stack=stack)
        say(f"Time until here: {stages.summary()}.")
        code = take_down(home, stack, "fetch")
    except KeyboardInterrupt:
        say(left_alone(stack))
        return INTERRUPTED
    except LimitReached:
        return bring_to_its_end(stack) or FAILED
    except SENTENCES as refused:
        note(f"{sentence(str(refused))} {bill(stack)}")
        return FAILED
    return FAILED if failed else code


def left_alone(stack: str) -> str:
    """Say what becomes of a rental that nobody ends, and what it costs."""
    return f"\nStopped; `make up` does not cancel it any more. {bill(stack)} `make up STACK={stack} DOWN=1` does so again, `make down STACK={stack}` ends it and the bill."


def bill(stack: str) -> str:
    """Say what goes on costing, and who ends it where it has limits."""
    cost = cost_of_stack(stack)
    if cost.per_hour == 0:
        return "Nothing of it is billed."
    return f"It goes on costing {cost.price}. {who_looks(stack, Home.of())}".rstrip()


def _fetched(stack: str, stages: Stages) -> bool:
    """Fetch every run whole; the hash of each file is taken on its machine and here."""
    with stages.stage("fetch", "fetching everything; each file's hash is taken on its machine and here"):
        try:
            if find_cluster(stack) is None or not unfetched_runs(stack):
                say("    no run has begun on its machines")
                return True
        except Exception as error:  # noqa: BLE001 - machines that do not say what they have are not taken for empty
            note(sentence(str(error)))
            return False
        return run_part(fetch, stack=stack, everything=True) == 0


def _kept(
    keep_s: float, stack: str, outcome: Outcome | None, sleep: Callable[[float], None] = time.sleep
) -> Outcome | None:
    """Keep the machines of a job that has not finished, for a look at them; return what became of it meanwhile.

    Raises:
        LimitReached: a limit of the stack is reached before.
    """
    hold = limit_watch(stack)
    cost, began = cost_of_stack(stack), datetime.now(UTC)
    until = began + timedelta(seconds=keep_s)
    if not keep_s or cost.per_hour == 0:
        return outcome
    more = cost.more_until(until, began)
    at_most = "" if more is None else f"; until then at most {cost.amount(more)} more"
    say(
        f"The job has not finished; what it has made is here. Its machines stay for {duration(keep_s)}, until {until:%H:%M} UTC, and "
        f"cost {cost.price}{at_most}. Then they are cancelled.\n"
        f"Next: `fab logs --stack {stack}` shows why; `make up STACK={stack} DOWN=1` continues it; a higher keepFailed of microcluster:guard "
        f"in stacks/Pulumi.{stack}.yaml keeps the machines longer, Ctrl-C here until `make down STACK={stack}`."
    )
    while (now := datetime.now(UTC)) < until:
        sleep(min(LOOK_EVERY_S, (until - now).total_seconds()))
        outcome = outcome_or_none(stack)
        if outcome and outcome.state in AT_WORK:
            say("The job runs again; nothing is cancelled.")
            return outcome
        hold(outcome)
        with suppress(config.ConfigError):
            limits = config.read_guard(stack)
            keep_s = limits.keep_failed * 60 if limits else keep_s
        until = began + timedelta(seconds=keep_s)
    return outcome
