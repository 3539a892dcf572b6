"""Decision of a guard: rental and run go in, one verdict comes out; reads no clock and touches nothing.

What counts as idle is decided on the machines: `agent/supervise/idle.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.rental import CLOCKS_AGREE_S, Rental, hours
from microcluster.analysis.run_state import Outcome
from microcluster.core.catalog.billing_rules import DOLLARS, money
from microcluster.core.plain_text import duration
from microcluster.planning.run_cost import last_paid
from microcluster.rental.last_reading import Step
from microcluster.setup.errors import FAILED, UNKNOWN

STOP_S, FETCH_S, CANCEL_S = 120, 600, 180
"""Kept in reserve before a limit: to stop the program so that it saves, to fetch, and to cancel."""
RESERVE = timedelta(seconds=STOP_S + FETCH_S + CANCEL_S)
LEAST_SHARE = 5
"""Of a short lease the reserve takes at most this part."""
WARN_SHARE = Decimal("0.8")
HUNG_S, UNSAID_S, CLOSING_S = 600, 600, 1800
"""Limits of a hanging run, of a missing reading, and of a cancellation under way; after the last two somebody is told."""
NEVER_S = 1e9
LIVING = ("preparing", "running")
NO_RUN = Outcome("absent")
UNARMED_S = 7200
"""Before its first step a program may wait for data for longer than ever afterwards."""

Reason = Literal["budget", "lease", "idle", "done", "failed", "hung"]
Trouble = Literal["account", "machines", "idle", "failed", "stalled"]
"""Conditions with a time limit: account or machines do not answer, idle time is unknown, the run failed or stalled."""
MOVABLE = ("budget", "lease")
"""Limits that a person can extend, also once the end has begun."""


@dataclass(frozen=True)
class Limits:
    """Limits of the stack file, with the extension that a person has added since."""

    budget: Decimal | None = None
    lease_h: Decimal | None = None
    idle_s: float | None = None
    cancels_done: bool = True
    keep_failed_s: float = 1800
    blind_s: float = 1800
    """Time after which something unknown is an alarm."""

    @classmethod
    def of_account(cls) -> "Limits":
        """Return those of whoever has the account's key alone: what the account holds, and nothing that only machines could say."""
        return cls(cancels_done=False, keep_failed_s=NEVER_S)

    def terms(self, first_order: int) -> Terms:
        """Return lease and budget as the account holds them."""
        lease, budget = (
            None if each is None else round(each * unit) for each, unit in ((self.lease_h, 60), (self.budget, 100))
        )
        return Terms(first_order, lease, budget)

    @property
    def ask_machines(self) -> bool:
        """Whether one of them is about what only machines can say."""
        return self.cancels_done or self.idle_s is not None or self.keep_failed_s < NEVER_S

    def held_by(self, terms: Terms | None) -> "Limits":
        """Return the limits with lease and budget as the account holds them: a changed stack file counts from the next `up` on."""
        if terms is None:
            return self
        budget, minutes = terms.budget_cents, terms.lease_minutes
        budget = None if budget is None else Decimal(budget) / 100
        return replace(self, budget=budget, lease_h=None if minutes is None else Decimal(minutes) / 60)

    def extended(self, by: Extension) -> "Limits":
        """Return the limits with more dollars and hours, where there are limits."""
        budget = None if self.budget is None else self.budget + by.dollars
        return replace(self, budget=budget, lease_h=None if self.lease_h is None else self.lease_h + by.hours)


@dataclass(frozen=True)
class Begun:
    """An end that a guard has begun, and another one may finish."""

    reason: Reason
    at: datetime
    has_fetched: bool = False
    has_cancelled: bool = False


@dataclass(frozen=True)
class Seen:
    """All that a guard knows when it decides.

    Attributes:
        rental: as the account was last read; None where it never was.
        run: what its machines say; None where they do not answer.
        unread: why the account cannot be read now.
        since: of each trouble, when it began.
    """

    now: datetime
    rental: Rental | None
    run: Outcome | None = NO_RUN
    unread: str = ""
    since: Mapping[Trouble, datetime] = field(default_factory=dict)
    begun: Begun | None = None

    def lasts_s(self, trouble: Trouble) -> float:
        """Return for how many seconds it has lasted, whatever the gaps between looks."""
        return (self.now - self.since.get(trouble, self.now)).total_seconds()


@dataclass(frozen=True)
class End:
    """A limit: the end begins at ``begin``, and everything is cancelled at ``last`` whatever was fetched."""

    reason: Reason
    begin: datetime
    last: datetime


@dataclass(frozen=True)
class Verdict(Step):
    """What to do now.

    Attributes:
        warning: names a warning, so that it is said once.
        reason: of an end.
        fetch_by: when an end cancels whatever was fetched; None where it cancels only what was fetched whole.
        due: the limit that comes first.
    """

    step: Literal["over", "record", "warn", "end"]
    why: str
    code: int = 0
    warning: str = ""
    reason: Reason | None = None
    fetch_by: datetime | None = None
    due: End | None = None


def decide(limits: Limits, seen: Seen) -> Verdict:
    """Return what to do now."""
    rental = seen.rental
    if not seen.unread and (rental is None or not (rental.open or rental.is_coming)):
        return Verdict("over", "nothing is rented, and the account has no open billing item")
    due = first_end(limits, rental) if rental else None
    return replace(_first(limits, seen, due), due=due)


def _first(limits: Limits, seen: Seen, due: End | None) -> Verdict:
    """Return what the first rule that fits says."""
    rental, now, begun = seen.rental, seen.now, seen.begun
    if seen.unread:
        return _blind(limits, seen, due)
    if begun and begun.has_cancelled:
        alarm = (now - begun.at).total_seconds() > CLOSING_S
        since = f"cancelled at {begun.at:%H:%M} UTC and still billed at {price(rental)}: it is cancelled again"
        return Verdict("end", since, int(alarm), reason=begun.reason, fetch_by=now)
    if due and _is_reached(due, seen):
        return Verdict("end", said(due, limits, rental), reason=due.reason, fetch_by=due.last)
    said_of_run = [] if seen.run is None else [_of_run(limits, seen), _of_idleness(limits, seen)]
    found = sorted(filter(None, said_of_run), key=lambda verdict: verdict.step != "end")
    is_begun = begun and begun.reason not in MOVABLE and not (seen.run and seen.run.state in LIVING)
    if is_begun and not (found and found[0].step == "end"):
        return Verdict("end", f"its end began at {begun.at:%H:%M} UTC ({begun.reason})", reason=begun.reason)
    unseen = _unseen(limits, seen) if seen.run is None else None
    return next(filter(None, [*found, unseen, _near(limits, seen)]), Verdict("record", "within its limits"))


def _is_reached(due: End, seen: Seen) -> bool:
    """The machines stop the program for the same limit, by clocks of their own."""
    is_stopped = seen.run is not None and (seen.run.state, seen.run.cause) == ("stopped", "lease-over")
    early_s = CLOCKS_AGREE_S if is_stopped else 0
    return seen.now >= due.begin - timedelta(seconds=early_s)


def first_end(limits: Limits, rental: Rental) -> End | None:
    """Return the limit of lease or budget that comes first, with the time in which the end must begin."""
    ends = [end for end in (_lease_end(limits, rental), _budget_end(limits, rental)) if end]
    return min(ends, key=lambda end: end.begin, default=None)


def said(end: End, limits: Limits, rental: Rental) -> str:
    """Say which limit it is."""
    if end.reason == "budget":
        return f"${rental.spent:.2f} of ${limits.budget:.2f} is spent, and another started hour costs ${rental.per_hour:.2f}"
    unit = "h since the first machine" if rental.currency == DOLLARS else rental.currency
    return f"the lease of {float(limits.lease_h):g} {unit} ends at {end.last:%d %b %H:%M} UTC"


def price(rental: Rental) -> str:
    """Say what goes on costing."""
    return f"{money(rental.per_hour, rental.currency)}/h"


def _lease_end(limits: Limits, rental: Rental) -> End | None:
    if limits.lease_h is None or rental.began is None:
        return None
    last = rental.began + timedelta(hours=float(limits.lease_h))
    if rental.currency != DOLLARS:  # A queue counts the hours of its nodes, and nothing while it makes a job wait.
        if not rental.per_hour:
            return None
        last = rental.read_at + timedelta(hours=float((limits.lease_h - rental.spent) / rental.per_hour))
    share = timedelta(hours=float(limits.lease_h)) / LEAST_SHARE
    return End("lease", last - min(RESERVE, share), last)


def _budget_end(limits: Limits, rental: Rental) -> End | None:
    if limits.budget is None:
        return None
    going_on = [(row.opened, row.price) for row in rental.open]
    last = last_paid(limits.budget - rental.spent - rental.per_hour, going_on, rental.read_at)
    return End("budget", last - RESERVE, last) if last else None


def _alarm_after(limits: Limits, seen: Seen, trouble: Trouble) -> int:
    """Return the exit code of something unknown: after a while it is an alarm."""
    return FAILED if seen.lasts_s(trouble) > limits.blind_s else UNKNOWN


def _blind(limits: Limits, seen: Seen, due: End | None) -> Verdict:
    """An account that cannot be read is never taken for empty: what is due is stopped and fetched, and a person is told."""
    rental = seen.rental
    costs = (
        f"; it was billed at {price(rental)} when it was last read ({rental.read_at:%d %b %H:%M} UTC)" if rental else ""
    )
    for_s = f", for {duration(seen.lasts_s('account'))}" if seen.lasts_s("account") else ""
    why = f"the account cannot be read{for_s}: {seen.unread.rstrip('.')}{costs}"
    code = _alarm_after(limits, seen, "account")
    if due and _is_reached(due, seen):
        return Verdict("end", f"{due.reason} is due, and {why}", code, reason=due.reason, fetch_by=due.last)
    return Verdict("warn", why, code, warning="account")


def _unseen(limits: Limits, seen: Seen) -> Verdict | None:
    """Machines that do not answer prove nothing: neither that the job is done, nor that they are idle."""
    if not (seen.rental.open and limits.ask_machines):
        return None
    for_s = f" for {duration(seen.lasts_s('machines'))}" if seen.lasts_s("machines") else ""
    why = f"its machines have not answered{for_s}, so that only lease and budget end it; it costs {price(seen.rental)}"
    return Verdict("warn", why, _alarm_after(limits, seen, "machines"), warning="machines")


def _of_run(limits: Limits, seen: Seen) -> Verdict | None:
    run = seen.run
    if run.state == "finished" and limits.cancels_done:
        return Verdict("end", "the job has finished", reason="done")
    if run.state == "stopped" and run.cause == "idle":
        return Verdict(
            "end", "the machines have stopped the program, as nothing happened on any of them", reason="idle"
        )
    if run.state == "failed":
        return _after(limits.keep_failed_s, seen.lasts_s("failed"), "failed", "the job has failed")
    return _after(HUNG_S, seen.lasts_s("stalled"), "hung", "the job hangs") if run.state == "stalled" else None


def _after(limit_s: float, passed_s: float, reason: Reason, what: str) -> Verdict | None:
    """Warn until the limit, and end then."""
    if passed_s >= limit_s:
        return Verdict("end", f"{what}, longer than {duration(limit_s)}", reason=reason)
    if limit_s == NEVER_S:
        return None
    why = f"{what}; everything is fetched and cancelled in {duration(limit_s - passed_s)}"
    return Verdict("warn", why, warning=reason)


def _of_idleness(limits: Limits, seen: Seen) -> Verdict | None:
    """Whatever the run's state is: machines that are kept may be forgotten too."""
    idle_s = seen.run.idle_s
    if limits.idle_s is None or not seen.rental.open:
        return None
    if idle_s is None:
        lasts_s = seen.lasts_s("idle")
        if lasts_s < UNSAID_S:
            return None
        why = (
            f"a machine has not said for {duration(lasts_s)} whether it is idle, so that nothing is ended for idleness"
        )
        return Verdict("warn", why, _alarm_after(limits, seen, "idle"), warning="blind")
    limit_s = limits.idle_s if seen.run.armed else max(limits.idle_s, UNARMED_S)
    if idle_s < limit_s / 2:
        return None
    return _after(limit_s, idle_s, "idle", f"nothing has happened on any machine for {duration(idle_s)}")


def _near(limits: Limits, seen: Seen) -> Verdict | None:
    """Warn at 80 % of a limit, and where a budget would never be reached."""
    rental = seen.rental
    if limits.budget and any(row.hourly and not row.per_hour for row in rental.open):
        why = "the account names no price of something that is rented, so that the budget cannot hold it"
        return Verdict("warn", why, 1, warning="price")
    spent = rental.spent_at(seen.now)
    if limits.budget and spent >= limits.budget * WARN_SHARE:
        return Verdict(
            "warn", f"${spent:.2f} of ${limits.budget:.2f} is spent", warning=f"budget {float(limits.budget):g}"
        )
    if limits.lease_h and rental.began:
        of_queue = rental.currency != DOLLARS
        used = spent if of_queue else hours(seen.now - rental.began)
        if used >= limits.lease_h * WARN_SHARE:
            why = f"{used:.1f} of {float(limits.lease_h):g} {rental.currency if of_queue else 'hours'} are over"
            return Verdict("warn", why, warning=f"lease {float(limits.lease_h):g}")
    return None
