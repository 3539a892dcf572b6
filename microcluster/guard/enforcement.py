"""Look of a guard at a rental: read, decide, act, write down; each part may be repeated, also by another guard."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from microcluster.accounts.shared.account import Extension
from microcluster.accounts.shared.errors import ProviderError
from microcluster.analysis.run_state import Outcome
from microcluster.core.plain_text import note
from microcluster.guard.actions import RentalActions
from microcluster.guard.decision import (
    CANCEL_S,
    FETCH_S,
    LIVING,
    NO_RUN,
    Begun,
    Limits,
    Seen,
    Trouble,
    Verdict,
    decide,
    price,
)
from microcluster.guard.records import GuardLog, Record
from microcluster.setup.errors import FAILED

LEAST_FETCH_S, LATE_S, LONGEST_FETCH_S = 60, 300, 6 * 3600
"""Limits of a fetch: the least; a guard later than LATE_S after a limit gives FETCH_S; the most, where no limit presses."""
TURN_S = 1800
"""Time of a guard at work after a limit (it stops, fetches, cancels) before another one takes over."""


@dataclass(frozen=True)
class Guard:
    """Guard of a stack: its limits, its actions, the log of all guards, and where it announces."""

    who: str
    limits: Limits
    actions: RentalActions
    log: GuardLog
    announce: Callable[[str], None] = note

    def look(self) -> Record:
        """Look once, and act where no other guard is at work."""
        with self._turn() as mine:
            record = self.watch()
            waits = record.verdict.fetch_by is None and self.actions.is_busy()
            return self._end(record) if record.verdict.step == "end" and mine and not waits else record

    def end(self, verdict: Verdict) -> Record | None:
        """Bring the rental to this end, or to that of a limit which is reached; None while another guard is at work."""
        with self._turn() as mine:
            if not mine:
                return None
            record = self.see()
            if record.verdict.step != "end":
                record = replace(record, verdict=verdict)
            if record.verdict.fetch_by is None and self.actions.is_busy():  # Perhaps with another job by now.
                self.announce("guard: nothing is cancelled while another command works on the stack.")
                return record
            # Of a queue nothing is rented once its job has ended, and Pulumi's state is still there.
            return self._end(record, ("end", "over"))

    def watch(self) -> Record:
        """Look and warn, tell the machines what they may hold by themselves, and leave the end to others."""
        record = self.see()
        verdict = record.verdict
        if verdict.step == "warn" and (verdict.code == FAILED or verdict.warning not in record.told):
            self.announce(f"guard: {verdict.why}.")
            record = replace(record, told=(*record.told, verdict.warning))
        self._keep(record)
        if verdict.step != "end" and record.rental and record.rental.open:
            self.actions.enforce(verdict.due.begin if verdict.due else None, self.limits.idle_s)
        return record

    def see(self) -> Record:
        """Read account and machines, and decide; does nothing else."""
        before = self.log.newest()
        rental, terms, extension, unread = None, None, Extension(), ""
        if before and before.lives:
            rental, extension = before.rental, before.extension
        try:
            rental, terms, extension = self.actions.rental(self.limits)
        except ProviderError as error:
            unread = str(error)
        now = self.actions.now()
        is_rented = rental is not None and (rental.open or rental.is_coming)
        # Where nothing is rented, no other rental has begun, whatever the account still lists of the last one.
        if before and (
            before.rental is None or rental is None or (is_rented and not rental.goes_on_from(before.rental))
        ):
            lasting = {key: moment for key, moment in before.began.items() if key == "account"}
            before = replace(before, begun=None, told=(), began=lasting)
        before = before or Record(self.who, now, Verdict("record", "nothing was found of this rental before"))
        limits = self.limits.held_by(terms) if not unread else before.limits or self.limits
        run = self.actions.run() if unread or (rental and rental.open) else NO_RUN
        began = {trouble: before.began.get(trouble, now) for trouble in _troubles(run, unread)}
        begun = before.begun if run is None or run.state not in LIVING else None
        seen = Seen(now, rental, run, unread, began, begun)
        verdict = decide(limits.extended(extension), seen)
        if verdict.step == "over" and before.lives and begun and begun.has_cancelled:
            # Who was cancelling has not said so: keys, groups and the state may be left, which nobody bills.
            verdict = Verdict(
                "end",
                f"nothing is billed, and who cancelled it at {begun.at:%H:%M} UTC did not finish",
                reason=begun.reason,
            )
        account, opens = self.actions.account_id() or before.account, self.actions.settings() or before.opens
        return Record(
            self.who,
            now,
            verdict,
            rental,
            account,
            opens,
            extension=extension,
            begun=begun,
            told=before.told,
            unread=unread,
            began=began,
            limits=limits,
        )

    def _turn(self) -> AbstractContextManager[bool]:
        newest = self.log.newest()
        is_over = bool(newest and newest.verdict.due and self.actions.now() > newest.verdict.due.last)
        return self.actions.alone(longest_s=TURN_S if is_over else LONGEST_FETCH_S)

    def _end(self, record: Record, cancels_at: tuple[str, ...] = ("end",)) -> Record:
        """Stop, fetch, cancel; what fails keeps a limit from nothing, and every other end from the cancellation.

        ``cancels_at`` are the verdicts with which it still cancels after the fetch.
        """
        verdict = record.verdict
        begun = record.begun or Begun(verdict.reason, record.at)
        record = self._keep(replace(record, begun=begun))
        costs = f", at {price(record.rental)}" if record.rental else ""
        self.announce(f"guard: {verdict.why}{costs}. Now it stops the program, fetches, and cancels everything.")
        if not (begun.has_fetched or begun.has_cancelled):
            stopped = self.actions.stop()
            if stopped:
                self.announce(f"guard: the program may still run: {stopped}")
            lost = self.actions.fetch(self._fetch_limit_s(verdict, begun_at=record.at))
            if lost and verdict.fetch_by is None:
                return self._alarm(record, f"not everything was fetched, so that nothing was cancelled: {lost}")
            if lost:
                self.announce(f"guard: not everything was fetched, and the limit leaves no time: {lost}")
            begun = replace(begun, has_fetched=not lost)
            record = self._keep(replace(record, begun=begun))
        if not begun.has_cancelled:
            again = self.see()
            record = replace(record, unread=again.unread)
            if again.unread and verdict.fetch_by is None:
                return self._alarm(record, again.verdict.why, code=again.verdict.code)
            # At a limit it is tried all the same: who may not see everything may still cancel what is known.
            goes_on = again.unread or again.verdict.step in cancels_at
            if not goes_on:  # A person has extended or cancelled it in the meantime.
                self.announce(f"guard: nothing is cancelled: {again.verdict.why}.")
                return self._keep(replace(again, begun=None))
            if verdict.fetch_by is None and self.actions.is_busy():  # A person's `make up` came while it was fetched.
                self.announce("guard: nothing is cancelled while another command works on the stack.")
                return record
        # What an account did not take is no cancellation: this computer's clock may be wrong, and the limit far off.
        is_cancelled = begun.has_cancelled or not record.unread
        record = self._keep(replace(record, begun=replace(begun, has_cancelled=is_cancelled)))
        failed = self.actions.cancel(pressing=verdict.fetch_by is not None)
        if failed:
            billed = f"; it was billed at {price(record.rental)}" if record.unread and record.rental else ""
            return self._alarm(record, f"not everything was cancelled: {failed.rstrip('.')}{billed}")
        over = replace(verdict, step="over", why=f"{verdict.why}: cancelled", code=0)
        return self._keep(replace(record, verdict=over, unread=""))

    def _fetch_limit_s(self, verdict: Verdict, begun_at: datetime) -> float:
        until = verdict.fetch_by or (verdict.due.last if verdict.due else None)
        if until is None:
            return LONGEST_FETCH_S
        if begun_at - until > timedelta(seconds=LATE_S):
            return FETCH_S
        return max((until - self.actions.now()).total_seconds() - CANCEL_S, LEAST_FETCH_S)

    def _alarm(self, record: Record, why: str, code: int = FAILED) -> Record:
        self.announce(f"guard: {why}")
        return self._keep(replace(record, verdict=replace(record.verdict, why=why, code=code)))

    def _keep(self, record: Record) -> Record:
        self.log.write(record)
        return record


def _troubles(run: Outcome | None, unread: str) -> list[Trouble]:
    """Return the conditions that may not last for long."""
    if run is None:
        return ["account", "machines"] if unread else ["machines"]
    of_run: list[tuple[bool, Trouble]] = [
        (bool(unread), "account"),
        (run.state == "failed", "failed"),
        (run.state == "stalled", "stalled"),
        (run.idle_s is None, "idle"),
    ]
    return [trouble for is_so, trouble in of_run if is_so]
