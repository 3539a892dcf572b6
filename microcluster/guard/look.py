"""One look of a guard: read, decide, act and write down; every part of it may be repeated, and by another guard."""

import socket
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from core.files import write_whole
from microcluster.guard.decision import (
    CANCEL_S,
    FETCH_S,
    LIVING,
    UNREAD,
    Begun,
    Limits,
    Rental,
    Run,
    Seen,
    Verdict,
    decide,
    price,
)
from providers.rental.account import Extension
from providers.rental.errors import ProviderError

LEAST_FETCH_S, LATE_S, LONGEST_FETCH_S = 60, 300, 6 * 3600
"""A guard that comes later than this after a limit still gives the fetch its time; one that nothing presses goes on for long."""
TURN_S = 1800
"""For how long a guard may be at work, once a limit is over, before another one takes over: it stops, fetches and cancels."""
MISSED_LOOKS_S = 180
NEAR = timedelta(minutes=1)


class Hands(Protocol):
    """What a guard reads and does. What does something returns why it failed, or an empty text."""

    def alone(self, *, longest_s: float) -> AbstractContextManager[bool]:
        """Say whether no other guard is at work; one that has been for longer than this is interrupted."""

    def now(self) -> datetime:
        """Return the time by the account's clock, where it has answered; else by this computer's."""

    def rental(self) -> tuple[Rental, Extension]:
        """Read the account; raises ProviderError."""

    def run(self) -> Run:
        """Ask the machines."""

    def hold(self, stop_at: datetime | None, idle_s: float | None) -> str:
        """Let the machines stop the program by themselves then, or after so long without work, should no guard be awake."""

    def stop(self) -> str:
        """Stop the program so that it saves, as `fab stop` does."""

    def fetch(self, limit_s: float) -> str:
        """Fetch everything, and compare its hashes."""

    def is_busy(self) -> bool:
        """Say whether another command, such as `make up`, works on the stack."""

    def cancel(self, *, pressing: bool) -> str:
        """Cancel everything, prove it, and print the receipt; ``pressing`` interrupts a command that is in the way."""


@dataclass(frozen=True)
class Record:
    """What a guard found when it looked last.

    Attributes:
        who: the guard: the command and its computer.
        told: the warnings that were given.
        stop_at, idle_s: when the machines were told to stop the program by themselves, and after how long without work.
        failed_since, hung_since, blind_since: since when the run has failed, hangs, and its idle time cannot be read.
    """

    who: str
    at: datetime
    verdict: Verdict
    rental: Rental | None = None
    extension: Extension = field(default_factory=Extension)
    begun: Begun | None = None
    told: tuple[str, ...] = ()
    stop_at: datetime | None = None
    idle_s: float | None = None
    failed_since: datetime | None = None
    hung_since: datetime | None = None
    blind_since: datetime | None = None


class Book:
    """The records of all guards of a stack, in a folder that they share: one file for each guard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, record: Record) -> None:
        """Keep a guard's newest record."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(self.folder / f"{record.who.replace('/', '_')}.json", RECORD.dump_json(record), 0o600)

    def forget(self) -> None:
        """Begin anew: what was found of an earlier rental says nothing of the next one."""
        for path in self.folder.glob("*.json"):
            path.unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """Return what every guard found last, newest first; a file that cannot be read is passed over."""
        return sorted(self._readable(), key=lambda each: each.at, reverse=True)

    def _readable(self) -> Iterable[Record]:
        for path in self.folder.glob("*.json"):
            try:
                yield RECORD.validate_json(path.read_bytes())
            except (OSError, ValidationError):
                continue


RECORD = TypeAdapter(Record)


def called(kind: str) -> str:
    """Name a guard, for example ``timer@laptop``."""
    return f"{kind}@{socket.gethostname()}"


@dataclass(frozen=True)
class Guard:
    """One guard of a stack: with its limits, its hands, the book of all guards, and where it speaks."""

    who: str
    limits: Limits
    hands: Hands
    book: Book
    tell: Callable[[str], None]

    def look(self) -> Record:
        """Look once and act."""
        newest = next(iter(self.book.records()), None)
        is_over = bool(newest and newest.verdict.due and self.hands.now() > newest.verdict.due.last)
        with self.hands.alone(longest_s=TURN_S if is_over else LONGEST_FETCH_S) as mine:
            record = self.watch(mine=mine)
            waits = record.verdict.fetch_by is None and self.hands.is_busy()
            return self._end(record) if record.verdict.step == "end" and mine and not waits else record

    def watch(self, *, mine: bool = True) -> Record:
        """Look and warn, tell the machines what they may hold by themselves, and leave the end to others."""
        record = self.see(mine=mine)
        verdict = record.verdict
        if verdict.step == "warn" and verdict.warning not in record.told:
            self.tell(f"guard: {verdict.why}.")
            record = replace(record, told=(*record.told, verdict.warning))
        self.book.write(record)
        return record if verdict.step == "end" else self._hold(record)

    def _hold(self, record: Record) -> Record:
        """Tell the machines when to stop the program, where that is something else than they know."""
        due, idle_s = record.verdict.due, self.limits.idle_s
        begin = due.begin if due else None
        is_known = begin == record.stop_at or (begin and record.stop_at and abs(begin - record.stop_at) < NEAR)
        is_told = is_known and idle_s == record.idle_s
        if is_told or not record.rental or not record.rental.open or self.hands.hold(begin, idle_s):
            return record
        return self._keep(replace(record, stop_at=begin, idle_s=idle_s))

    def see(self, *, mine: bool = True) -> Record:
        """Read account and machines, and decide; does nothing else."""
        before = self.book.records()
        known = next((each for each in before[:1] if each.verdict.step != "over"), None)
        rental, extension, unread = (known.rental, known.extension, "") if known else (None, Extension(), "")
        try:
            rental, extension = self.hands.rental()
        except ProviderError as error:
            unread = str(error)
        now = self.hands.now()
        before = [each for each in before if rental and each.rental and each.rental.began == rental.began]
        run = self.hands.run() if unread or (rental and rental.open) else Run()
        states = {
            "failed_since": run.state == "failed",
            "hung_since": run.state == "stalled",
            "blind_since": run.state != "failed" and run.idle_s is None,
        }
        since = {name: _since(before, name, now) if holds else None for name, holds in states.items()}
        passed = {name.replace("since", "s"): _age(moment, now) for name, moment in since.items()}
        begun = before[0].begun if before and run.state not in LIVING else None
        seen = Seen(now, rental, run, unread, begun=begun, others_turn=not mine, **passed)
        verdict = decide(self.limits.extended(extension), seen)
        told = tuple(sorted({word for each in before for word in each.told}))
        stop_at, idle_s = (before[0].stop_at, before[0].idle_s) if before and run.is_held else (None, None)
        return Record(self.who, now, verdict, rental, extension, begun, told, stop_at, idle_s, **since)

    def _end(self, record: Record) -> Record:
        """Stop, fetch, cancel; what fails keeps a limit from nothing, and every other end from the cancellation."""
        verdict = record.verdict
        begun = record.begun or Begun(verdict.reason, record.at)
        record = self._keep(replace(record, begun=begun))
        costs = f", at {price(record.rental)}" if record.rental else ""
        self.tell(f"guard: {verdict.why}{costs}. Now it stops the program, fetches, and cancels everything.")
        if not (begun.has_fetched or begun.has_cancelled):
            stopped = self.hands.stop()
            if stopped:
                self.tell(f"guard: the program may still run: {stopped}")
            lost = self.hands.fetch(self._fetch_limit_s(verdict))
            if lost and verdict.fetch_by is None:
                return self._alarm(record, f"not everything was fetched, so that nothing was cancelled: {lost}")
            if lost:
                self.tell(f"guard: not everything was fetched, and the limit leaves no time: {lost}")
            begun = replace(begun, has_fetched=not lost)
            record = self._keep(replace(record, begun=begun))
        if not begun.has_cancelled:
            again = self.see()
            if again.verdict.code == UNREAD:
                return self._alarm(record, again.verdict.why, code=UNREAD)
            if again.verdict.step != "end":  # A person has extended it in the meantime.
                self.tell(f"guard: nothing is cancelled: {again.verdict.why}.")
                return self._keep(replace(again, begun=None))
            if verdict.fetch_by is None and self.hands.is_busy():  # A person's `make up` came while it was fetched.
                self.tell("guard: nothing is cancelled while another command works on the stack.")
                return record
        record = self._keep(replace(record, begun=replace(begun, has_cancelled=True)))
        failed = self.hands.cancel(pressing=verdict.fetch_by is not None)
        if failed:
            return self._alarm(record, f"not everything was cancelled: {failed}")
        return self._keep(
            replace(record, verdict=replace(verdict, step="over", why=f"{verdict.why}: cancelled", code=0))
        )

    def _fetch_limit_s(self, verdict: Verdict) -> float:
        until = verdict.fetch_by or (verdict.due.last if verdict.due else None)
        left_s = (until - self.hands.now()).total_seconds() if until else LONGEST_FETCH_S
        return FETCH_S if left_s < -LATE_S else max(left_s - CANCEL_S, LEAST_FETCH_S)

    def _alarm(self, record: Record, why: str, code: int = 1) -> Record:
        self.tell(f"guard: {why}")
        return self._keep(replace(record, verdict=replace(record.verdict, why=why, code=code)))

    def _keep(self, record: Record) -> Record:
        self.book.write(record)
        return record


def _since(before: Iterable[Record], name: str, now: datetime) -> datetime:
    """Return since when a state holds by the newest record; a gap between two looks begins anew."""
    newest = next(iter(before), None)
    if newest is None or (now - newest.at).total_seconds() > MISSED_LOOKS_S:
        return now
    return getattr(newest, name) or now


def _age(since: datetime | None, now: datetime) -> float:
    return (now - since).total_seconds() if since else 0.0
