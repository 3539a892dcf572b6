"""How `make up DOWN=1` ends a rental with its job: fetch, cancel, receipt; a failed job keeps its machines for a while."""

import time
from collections.abc import Callable
from contextlib import suppress

from core.home import Home
from core.plain_text import note, say
from microcluster.analysis.run_state import Outcome
from microcluster.commands.command import FAILED, INTERRUPTED, SENTENCES, run_part, sentence
from microcluster.commands.guard import LOOK_EVERY_S, book_of, guard_of, limits_of, sentence_of, who_looks
from microcluster.commands.guard_look import fetch_begun
from microcluster.commands.money import cost_of_stack
from microcluster.commands.status import outcome_or_none
from microcluster.config import stack as config
from microcluster.guard.decision import LIVING, UNREAD, Limits, Verdict
from microcluster.lifecycle.locks import alone_on

OVER = Verdict("end", "the job is over", reason="done")
NOT_FINISHED = Outcome("failed")
"""What a guard is told of a job that has ended in any other way, or has never begun."""


def with_job(known: config.Stack, *, down: bool) -> bool:
    """Return whether a rental ends with its job."""
    return down or (known.guard is not None and known.guard.when_done == "cancel")


def end(home: Home, stack: str, *, is_up: bool = True, sleep: Callable[[float], None] = time.sleep) -> int | None:
    """Fetch everything, then cancel it and print the receipt; return None where the job runs again meanwhile.

    What cannot be fetched whole keeps everything from being cancelled. A stack that did not come up ends as a failed job does.
    """
    try:
        outcome = outcome_or_none(stack)
        is_done = is_up and outcome is not None and outcome.state == "finished"
        if not is_done and _runs_again(home, stack, sleep):
            return None
        looking = guard_of(stack, home, limits_of(stack) or Limits(), "up")
        while (record := looking.end(OVER)) is None or record.verdict.code == UNREAD:
            sleep(LOOK_EVERY_S)
    except KeyboardInterrupt:
        book_of(stack, home).forget()  # No guard is to finish what this person has stopped.
        say(left_alone(stack))
        return INTERRUPTED
    except SENTENCES as refused:
        note(f"{sentence(str(refused))} {bill(stack)}")
        return FAILED
    is_over = record.verdict.step == "over"
    if not is_over:
        note(f"{sentence_of(stack, record)} {bill(stack)}")
    return 0 if is_done and is_over else FAILED


def left_alone(stack: str) -> str:
    """Say what becomes of a rental that nobody ends, and what it costs."""
    return f"\nStopped; `make up` does not cancel it any more. {bill(stack)} `make up STACK={stack} DOWN=1` does so again, `make down STACK={stack}` ends it and the bill."


def bill(stack: str) -> str:
    """Say what goes on costing, and who ends it where it has limits."""
    cost = cost_of_stack(stack)
    if cost.per_hour == 0:
        return "Nothing of it is billed."
    return f"It goes on costing {cost.price}. {who_looks(stack, Home.of())}".rstrip()


def _runs_again(home: Home, stack: str, sleep: Callable[[float], None]) -> bool:
    """Keep the machines of a job that has not finished, for a look at them, until a guard would end them; say whether it runs again."""
    limits, is_told = Limits(), False
    while True:
        outcome = outcome_or_none(stack)
        if outcome and outcome.state in LIVING:
            say("The job runs again; nothing is cancelled.")
            return True
        with suppress(config.ConfigError):
            limits = limits_of(stack) or limits
        if guard_of(stack, home, limits, "up", NOT_FINISHED).watch().verdict.step in ("end", "over"):
            return False
        if not is_told:
            _tell(home, stack)
            is_told = True
        sleep(LOOK_EVERY_S)


def _tell(home: Home, stack: str) -> None:
    """Bring home what the job has made, and say what a person can do meanwhile."""
    with alone_on(stack, "make up", home):  # Another guard leaves it alone meanwhile.
        is_fetched = run_part(fetch_begun, stack=stack) == 0
    made = "what it has made is here" if is_fetched else "not all that it has made could be fetched"
    say(
        f"The job has not finished; {made}. Its machines stay for a while, then they are cancelled. {bill(stack)}\n"
        f"Next: `fab logs --stack {stack}` shows why; `make up STACK={stack} DOWN=1` continues it; a higher keepFailed of microcluster:guard "
        f"in stacks/Pulumi.{stack}.yaml keeps the machines longer, Ctrl-C here until `make down STACK={stack}`."
    )
