"""Installed timer of a stack's guard on this computer: installing and proving it, and who looks every minute."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

from microcluster.accounts.shared.account import Extension
from microcluster.command_line.parts import print_json
from microcluster.config import stack as config
from microcluster.core.catalog.billing_rules import DOLLARS
from microcluster.core.home import Home
from microcluster.core.plain_text import BY_TIMER, duration, note, say
from microcluster.guard import timer
from microcluster.guard.limits import limits_in
from microcluster.guard.records import Record, called, log_of
from microcluster.guard.texts import facts, sentence_of
from microcluster.lifecycle import account_opening, emulated_account
from microcluster.rental.account import place_of
from microcluster.setup.environment import FAB, PROJECT
from microcluster.setup.errors import FAILED, CommandFailed, UserMistake

WEEKEND_H = 63
"""Hours from Friday 18:00 to Monday 9:00."""
MISSED_LOOKS_S = 180
"""Age of the last look from which a timer counts as silent."""


class TimerLooks(NamedTuple):
    """Timer of a stack on this computer, when it looked last as text (empty without one), and whether that was in time."""

    text: str
    is_timely: bool


def who_looks(known: config.Stack, home: Home) -> str:
    """Say who holds a stack to its limits when nobody watches it any more; an empty text where it has none."""
    if known.guard is None:
        return ""
    stack = known.name
    looks, is_timely = every_minute(stack, home)
    newest = log_of(stack, home).newest()
    due = newest.verdict.due if newest else None
    when = f", at the latest from {due.begin:%d %b %H:%M} UTC ({due.reason})" if due else ""
    if due and newest.rental and newest.rental.currency == DOLLARS:
        more = newest.rental.spent_at(due.last) - newest.rental.spent_at(datetime.now(UTC))
        when += f", until when it costs at most ${max(more, Decimal(0)):.2f} more"
    if is_timely:
        return f"{looks}, holds it to its limits{when}."
    nobody = f"{looks}. Until it looks, nobody" if looks else "Nobody"
    return f"{nobody} holds it to its limits{when}: `fab guard --install --stack {stack}` does."


def say_limits(known: config.Stack) -> None:
    """Say before the order what the guard will do and when at the latest, or what a weekend without one costs."""
    rent = known.cluster.rent_per_hour
    if known.guard is None:
        if rent and not emulated_account.of_account(known.account, Home.of()):
            say(
                f"No guard: forgotten from Friday evening to Monday morning this costs ${rent * WEEKEND_H:,.0f}. "
                "`microcluster:guard: {lease: 30}` in the stack file ends it by itself."
            )
        return
    newest = log_of(known.name, Home.of()).newest()
    extension = newest.extension if newest and newest.rental and newest.rental.open else Extension()
    limits = limits_in(known.guard).extended(extension)
    ends = ["when the job is done"] if limits.cancels_done else []
    ends.append(f"{duration(limits.keep_failed_s)} after the job has failed")
    if limits.idle_s:
        ends.append(f"after {duration(limits.idle_s)} in which nothing happens on any machine")
    if limits.lease_h:
        ends.append(f"after {float(limits.lease_h):g} {'h since the first machine' if rent else 'node hours'}")
    if limits.budget and rent:  # One started hour stays in reserve.
        ends.append(f"after the {limits.budget // rent - 1} h that ${float(limits.budget):g} pays")
    more = f" It was extended by {extension}." if extension else ""
    looks = every_minute(known.name, Home.of()).text or f"nobody until `fab guard --install --stack {known.name}`"
    say(
        f"The guard fetches and cancels everything {', '.join(ends)}, whichever comes first.{more} It looks while `make up` or `fab watch` "
        f"runs; without them, every minute: {looks}."
    )


def remove(stack: str, home: Home) -> bool:
    """Remove the timer of a stack; return whether it was there."""
    return timer.timer(timer_job(stack, home)).remove()


def install(stack: str, home: Home) -> int:
    """Install the timer, and look once as it will: with nothing of this terminal."""
    of = place_of(stack).settings
    missing = account_opening.why_no_key(of.name, of.config_file, exported={})
    if missing:
        raise UserMistake(
            f"A timer does not see the variables of this terminal, and without them the account cannot be opened: {missing} "
            f"Then `fab guard --install --stack {stack}` again."
        )
    chosen = timer.timer(timer_job(stack, home))
    say(
        f"{chosen.install()}. `fab guard --remove --stack {stack}` removes it; it goes by itself when nothing is rented any more."
    )
    before = _seen(stack, home)
    code = chosen.prove()
    seen = _seen(stack, home)
    if seen is None or seen == before:
        raise CommandFailed(
            f"proving the timer of stack {stack}: it ended with exit code {code} and was not seen to look. The place "
            f"above has what it said. Then `fab guard --install --stack {stack}` again."
        )
    say(sentence_of(stack, seen))
    return seen.verdict.code or code


def every_minute(stack: str, home: Home) -> TimerLooks:
    """Return which timer of this computer looks at a stack, and when it was last seen to."""
    seen = _seen(stack, home)
    try:
        where, can_run = timer.timer(timer_job(stack, home)).where()
    except CommandFailed as unknown:
        note(str(unknown))
        return TimerLooks("", False)
    if not can_run:
        return TimerLooks(where, False)
    if seen is None:
        return TimerLooks(f"{where}, not seen to look yet", False)
    age_s = (datetime.now(UTC) - seen.at).total_seconds()
    return TimerLooks(f"{where}, last seen to look {duration(age_s)} ago", age_s <= MISSED_LOOKS_S)


def _seen(stack: str, home: Home) -> Record | None:
    """Return the newest record of this computer's timer."""
    return next((each for each in log_of(stack, home).records() if each.who == called("timer")), None)


def timer_job(stack: str, home: Home) -> timer.Job:
    """Return what the timer of a stack runs."""
    label = home.label_of(stack)  # A renamed stack goes on with the timer that it had.
    words = (str(FAB), "guard", "--stack", stack)
    variables = {"MICROCLUSTER_HOME": str(home.root), "MICROCLUSTER_CACHE": str(home.cache), BY_TIMER: "timer"}
    return timer.Job(label, words, PROJECT, variables, home.logs)


def show(stack: str, home: Home, *, as_json: bool) -> int:
    """Print what each guard found last; return 1 where one that should look every minute does not."""
    records = log_of(stack, home).records()
    ages = {each.who: (datetime.now(UTC) - each.at).total_seconds() for each in records}
    looks, is_timely = every_minute(stack, home)
    late = bool(looks) and not is_timely
    if as_json:
        print_json([facts(each) for each in records])
    else:
        lines = [f"{each.who} looked {duration(ages[each.who])} ago: {each.verdict.why}" for each in records]
        say("\n".join(lines or [f"no guard of stack {stack} has looked yet"]))
        say(sentence_of(stack, records[0]) if records else f"Next: `fab guard --stack {stack}` looks once.")
        say(f"every minute: {looks or 'nothing on this computer'}")
        if late:
            say(f"IT HAS NOT LOOKED LATELY: `fab guard --install --stack {stack}` installs and proves it anew.")
    return FAILED if late else 0
