"""`fab guard` and `fab extend`: hold a rental to its limits, and move them."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

from agent.supervise.guard import CAUSES
from microcluster.accounts.shared.account import Extension
from microcluster.analysis.run_state import Outcome
from microcluster.commands.account_charges import account_and_owner, book_of, guarded_owner, place_of, take_up
from microcluster.commands.command_line import (
    FAILED,
    STACK,
    UNKNOWN,
    CommandFailed,
    UserMistake,
    command,
    print_json,
    run_part,
)
from microcluster.commands.guard_enforcement import MISSED_LOOKS_S, Guard, StackHands
from microcluster.config import stack as config
from microcluster.core.catalog.billing_rules import DOLLARS, money
from microcluster.core.home import Home, stack_of
from microcluster.core.plain_text import BY_TIMER, duration, note, say
from microcluster.guard import timer
from microcluster.guard.decision import Limits, Verdict, price
from microcluster.guard.records import RECORD, Record, called
from microcluster.guard.rental import CLOCKS_AGREE_S
from microcluster.lifecycle import account_opening, emulated_account, pulumi_state
from microcluster.setup.environment import PROJECT, VENV, use_own_backend

LOOK_EVERY_S, MOST_LOOKS = 60, 24 * 60
MOST_MORE = 100_000
"""Hours or dollars of one extension."""
UNSEEN = ("idle", "hung")
"""Ends that a watching command does not see by itself."""
WEEKEND_H = 63
"""From Friday 18:00 to Monday 9:00."""


class LimitReached(Exception):
    """The rental must come to its end."""


@command
def guard(  # noqa: PLR0917 - Fabric makes an option of each
    stack: str = STACK,
    install: bool = False,
    remove: bool = False,
    status: bool = False,
    as_json: bool = False,
    mark: str = "",
) -> int:
    """Look once at the stack's limits and act; 0 all is well, 1 alarm, 3 something cannot be read. --install looks every minute."""
    home = Home.of()
    use_own_backend(home)
    if mark:
        take_up(stack, mark)
    act = partial(_guard, home=home, install=install, remove=remove, status=status, as_json=as_json)
    has_it, is_stack = stack_of(home.keys / stack), stack in config.stacks()
    if has_it == stack or (is_stack and (install or remove or status)):
        return act(stack)
    note(f"Stack {stack} is called {has_it} now; what guards the old name goes on with it.")
    code = act(has_it)
    # A timer of before the rename says a name that a new stack may have by now.
    return max(code, act(stack)) if is_stack and pulumi_state.known(stack, home).resources else code


def _guard(stack: str, home: Home, *, install: bool, remove: bool, status: bool, as_json: bool) -> int:
    if remove:
        was_there = timer.timer(_timed(stack, home)).remove()
        say(f"stack {stack}: {'the timer is removed' if was_there else 'there was no timer'}")
        return 0
    if status:
        return _status(stack, home, as_json=as_json)
    limits = limits_known(stack, home)
    if install:
        return _install(stack, home)
    looking = guard_of(stack, home, limits, os.environ.get(BY_TIMER, "guard"))
    before = [each for each in looking.book.records() if each.who == looking.who and each.rental and each.rental.open]
    record = looking.look()
    is_over = record.verdict.step == "over" and (before or (record.rental and record.rental.open))
    if is_over:
        with suppress(CommandFailed):  # It goes on looking at nothing, and says so in its log.
            timer.timer(_timed(stack, home)).remove()
    if as_json:
        print_json(facts(record))
    else:
        say(sentence_of(stack, record))
    return record.verdict.code


@command
def extend(stack: str = STACK, hours: float = 0.0, dollars: float = 0.0) -> int:
    """Let a rental last longer, or cost more, than its stack file says; every guard reads it in the account."""
    home = Home.of()
    use_own_backend(home)
    account, owner = account_and_owner(stack)
    limits = limits_known(stack, home).held_by(account.terms(owner))
    more = Extension(Decimal(str(hours)), Decimal(str(dollars)))
    if not (0 <= hours <= MOST_MORE and 0 <= dollars <= MOST_MORE and more):
        raise UserMistake(
            f"Say how much more, up to {MOST_MORE:,}: fab extend --hours 6 --stack {stack}, or --dollars 50."
        )
    if (hours and limits.lease_h is None) or (dollars and limits.budget is None):
        raise UserMistake(
            f"There is nothing to extend: hours are of guard.lease and dollars of guard.budget, which stacks/Pulumi.{stack}.yaml had not when "
            f"it was rented. Add them there, then run: make up STACK={stack}"
        )
    newest = book_of(stack, home).newest()
    if newest and newest.begun and newest.begun.has_cancelled:
        raise CommandFailed(
            f"Too late: the guard of stack {stack} cancelled its machines at {newest.begun.at:%H:%M} UTC. "
            f"`make up STACK={stack}` rents again."
        )
    whole = account.extension(owner, account.extension(owner) + more)
    say(f"stack {stack}: {more} more; {whole} in all beside its stack file, recorded in the account")
    record = guard_of(stack, home, limits, "extend").watch()  # The machines have to know before the run goes on.
    say(sentence_of(stack, record))
    return 0


def limits_of(stack: str) -> Limits | None:
    """Return the limits in a stack file, even if the rest of it is wrong by now."""
    return limits_in(config.read_guard(stack))


def limits_known(stack: str, home: Home) -> Limits:
    """Return the limits in a stack file; where that cannot be read or has none, those that a guard wrote down, or the account's alone.

    Raises:
        UserMistake: nothing was rented with limits, and the stack file has none.
    """
    newest = book_of(stack, home).newest()
    if guarded_owner(stack):
        return Limits.of_account()
    try:
        limits, why = limits_of(stack), f"stacks/Pulumi.{stack}.yaml has no microcluster:guard"
    except config.ConfigError as error:
        limits, why = None, str(error)
    if limits:
        return limits
    if newest and newest.lives:
        note(f"guard of stack {stack}: {why.rstrip('.')}. The limits with which it was rented count.")
        return newest.limits or Limits.of_account()
    account, owner = account_and_owner(stack)
    terms = account.terms(owner)
    if terms is None or (terms.lease_minutes is None and terms.budget_cents is None):
        raise UserMistake(
            f"Nothing limits stack {stack}: {why.rstrip('.')}. Write for example "
            "`microcluster:guard: {lease: 30}` under config, then run the same command again."
        )
    return Limits.of_account()


def limits_in(section: config.Guard | None) -> Limits | None:
    """Return the limits that the section of a stack file says."""
    if section is None:
        return None
    budget, lease_h = (
        None if each is None else Decimal(str(each)).quantize(Decimal("0.0001"))
        for each in (section.budget, section.lease)
    )
    idle_s = None if section.idle is None else section.idle * 60
    return Limits(budget, lease_h, idle_s, section.when_done == "cancel", section.keep_failed * 60, section.blind * 60)


def guard_of(stack: str, home: Home, limits: Limits, kind: str, outcome: Outcome | None = None) -> Guard:
    """Return a guard of a stack; ``outcome`` is what whoever watches the run has just read."""
    hands = StackHands(stack, home, outcome)
    return Guard(called(kind), limits, hands, book_of(stack, home))


def watched(stack: str, outcome: Outcome | None) -> Verdict | None:
    """Look with the eyes of a command that watches the run, and tell the machines the limits as they are now.

    A limit that cannot be read, for whatever reason, keeps nobody from watching.
    """
    try:
        limits = limits_of(stack)
        return guard_of(stack, Home.of(), limits, "watch", outcome).watch().verdict if limits else None
    except Exception as error:  # noqa: BLE001
        note(f"guard: {error}")
        return None


def limit_watch(stack: str) -> Callable[[Outcome | None], None]:
    """Return what looks once a minute with the eyes of a command that watches the run, and raises LimitReached.

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


def bring_to_its_end(stack: str, sleep: Callable[[float], None] = time.sleep) -> int:
    """Look until the account can be read and no limit is about to be reached: this may be the only guard, and it goes on costing."""
    for _ in range(MOST_LOOKS):
        code = run_part(guard, stack=stack)
        newest = book_of(stack, Home.of()).newest()
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


def who_looks(stack: str, home: Home) -> str:
    """Say who holds a stack to its limits when nobody watches it any more; an empty text where it has none."""
    try:
        if limits_of(stack) is None:
            return ""
    except config.ConfigError as error:
        return str(error)
    looks, is_timely = _every_minute(stack, home)
    newest = book_of(stack, home).newest()
    due = newest.verdict.due if newest else None
    when = f", at the latest from {due.begin:%d %b %H:%M} UTC ({due.reason})" if due else ""
    if due and newest.rental and newest.rental.currency == DOLLARS:
        more = newest.rental.spent_at(due.last) - newest.rental.spent_at(datetime.now(UTC))
        when += f", until when it costs at most ${max(more, Decimal(0)):.2f} more"
    if is_timely:
        return f"{looks}, holds it to its limits{when}."
    nobody = f"{looks}. Until it looks, nobody" if looks else "Nobody"
    return f"{nobody} holds it to its limits{when}: `fab guard --install --stack {stack}` does."


def facts(record: Record) -> dict[str, Any]:
    """Return what a guard found as plain values, with what follows from the charges."""
    known, rental = RECORD.dump_python(record, mode="json"), record.rental
    if rental:
        began = rental.began.isoformat() if rental.began else None
        money_now = {"spent": rental.spent, "per_hour": rental.per_hour, "currency": rental.currency}
        known["rental"] |= {"began": began, **money_now}
    return known


def sentence_of(stack: str, record: Record) -> str:
    """Say what a guard found, when it ends at the latest, and the next command."""
    rental, verdict, due = record.rental, record.verdict, record.verdict.due
    is_over = verdict.step == "over"
    said = f"guard of stack {stack}: {verdict.why}"
    if rental and rental.began:
        said += f"; {money(round(rental.spent, 2), rental.currency)} spent"
    if rental and rental.open and not is_over:
        said += f", {price(rental)}"
    if record.extension:
        said += f"; extended by {record.extension}"
    if due and not is_over:
        said += f"; {due.reason} ends it: from {due.begin:%d %b %H:%M} UTC, all cancelled by {due.last:%H:%M}"
    return f"{said}\nNext: {_next(stack, verdict.code, verdict.step)}."


def _next(stack: str, code: int, step: str) -> str:
    if step == "over":
        return f"`fab receipt --stack {stack}` shows what it cost"
    if code == UNKNOWN:
        return f"check the account's key and the network, then `fab guard --stack {stack}`"
    if code:
        return f"`make down STACK={stack} FETCH=1` ends the bill, with `DISCARD=1` without what cannot be fetched"
    return f"`fab extend --hours 6 --stack {stack}` moves the end, `fab guard --install --stack {stack}` looks every minute"


def say_limits(known: config.Stack) -> None:
    """Say before the order what the guard will do and when at the latest, or what a weekend without one costs."""
    rent = known.cluster.rent_per_hour
    if known.guard is None:
        if rent and not emulated_account.of_stack(known.name, Home.of()):
            say(
                f"No guard: forgotten from Friday evening to Monday morning this costs ${rent * WEEKEND_H:,.0f}. "
                "`microcluster:guard: {lease: 30}` in the stack file ends it by itself."
            )
        return
    newest = book_of(known.name, Home.of()).newest()
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
    looks = _every_minute(known.name, Home.of())[0] or f"nobody until `fab guard --install --stack {known.name}`"
    say(
        f"The guard fetches and cancels everything {', '.join(ends)}, whichever comes first.{more} It looks while `make up` or `fab watch` "
        f"runs; without them, every minute: {looks}."
    )


def _install(stack: str, home: Home) -> int:
    """Install the timer, and look once as it will: with nothing of this terminal."""
    of, _ = place_of(stack)
    missing = account_opening.why_no_key(of.name, of.config_file, exported={})
    if missing:
        raise UserMistake(
            f"A timer does not see the variables of this terminal, and without them the account cannot be opened: {missing} "
            f"Then `fab guard --install --stack {stack}` again."
        )
    chosen = timer.timer(_timed(stack, home))
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


def _every_minute(stack: str, home: Home) -> tuple[str, bool]:
    """Say which timer of this computer holds a stack and when it was last seen to look, and whether it still does; none is no text."""
    seen = _seen(stack, home)
    try:
        where, can_run = timer.timer(_timed(stack, home)).where()
    except CommandFailed as unknown:
        note(str(unknown))
        return "", False
    if not can_run:
        return where, False
    if seen is None:
        return f"{where}, not seen to look yet", False
    age_s = (datetime.now(UTC) - seen.at).total_seconds()
    return f"{where}, last seen to look {duration(age_s)} ago", age_s <= MISSED_LOOKS_S


def _seen(stack: str, home: Home) -> Record | None:
    """Return what this computer's timer found last."""
    return next((each for each in book_of(stack, home).records() if each.who == called("timer")), None)


def _timed(stack: str, home: Home) -> timer.Job:
    label = home.label_of(stack)  # A renamed stack goes on with the timer that it had.
    words = (str(VENV / "bin" / "fab"), "guard", "--stack", stack)
    variables = {"MICROCLUSTER_HOME": str(home.root), "MICROCLUSTER_CACHE": str(home.cache), BY_TIMER: "timer"}
    return timer.Job(label, words, PROJECT, variables, home.logs)


def _status(stack: str, home: Home, *, as_json: bool) -> int:
    """Show what each guard found last; one that should look every minute and does not is an error."""
    records = book_of(stack, home).records()
    ages = {each.who: (datetime.now(UTC) - each.at).total_seconds() for each in records}
    looks, is_timely = _every_minute(stack, home)
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
