"""One look of a guard: read, decide, act and write down, by the commands that a person has for the same.

Every part of it may be repeated, and by another guard.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.analysis.run_state import OUTCOME, Outcome
from microcluster.commands.account_charges import account_and_owner, guarded_owner, place_of
from microcluster.commands.apart import apart
from microcluster.commands.command_line import SENTENCES, CommandFailed, command, run_part
from microcluster.commands.down import STOP_LIMIT_S, by_account, down, is_another
from microcluster.commands.fetch import fetch, unfetched_runs
from microcluster.commands.holdings import known_machines
from microcluster.commands.stack_outputs import find_cluster, launcher_of
from microcluster.commands.status import outcome_or_none
from microcluster.commands.stop import stop
from microcluster.core.home import Home
from microcluster.core.plain_text import note, say
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
from microcluster.guard.records import Book, Record
from microcluster.guard.rental import CLOCKS_AGREE_S, Rental, named_rental
from microcluster.jobs.cluster_facts import Guard as HeldByMachines
from microcluster.lifecycle import locks
from microcluster.remote import job
from microcluster.setup.errors import FAILED, of_the_system

LEAST_FETCH_S, LATE_S, LONGEST_FETCH_S = 60, 300, 6 * 3600
"""A guard that begins later than this after a limit still gives the fetch its time; one that nothing presses goes on for long."""
TURN_S = 1800
"""For how long a guard may be at work, once a limit is over, before another one takes over: it stops, fetches and cancels."""
MISSED_LOOKS_S = 180
ASK_LIMIT_S, HOLD_LIMIT_S = 45, 15
"""Limits for reading the run's state from its machines, and for sending them their limits."""
ELSEWHERE = "the computer that ordered it knows its machines, and this one does not."
TIDY_S, PRESSED_TIDY_S = 300, CANCEL_S
"""For a cancellation by Pulumi; then the account's own calls do it."""


@dataclass
class StackHands:
    """Readings and actions of a guard. An action returns why it failed, or an empty text."""

    stack: str
    home: Home
    outcome: Outcome | None = None
    """State of the run, where the caller has just read it."""
    opened: OpenedAccount | None = None
    """The account, once it has answered."""
    answers: bool = True
    """Whether the machines did when they were asked last."""
    began: int | None = None
    """First order of the rental that was read last, in the account's seconds."""

    @contextmanager
    def alone(self, *, longest_s: float) -> Iterator[bool]:
        """Say whether no other guard is at work; one that has been for longer than this is interrupted, one at Ctrl-Z is not at work.

        The lock of the guards is beside the stack's own, which `make up` holds while it watches.
        """
        of_guards = f"{self.home.label_of(self.stack)}.guard"
        with ExitStack() as held:
            try:
                held.enter_context(locks.alone_on(of_guards, "fab guard", self.home))
                is_mine = True
            except CommandFailed as busy:
                note(str(busy))
                is_mine = not isinstance(busy, locks.Busy)
                if locks.held_s(of_guards, self.home) > longest_s:
                    locks.interrupt_holder(of_guards, self.home)
            except OSError as error:  # No limit waits for a disk.
                note(f"The guard's lock cannot be written: {of_the_system(error)}. It goes on without.")
                is_mine = True
            yield is_mine

    def now(self) -> datetime:
        """Believe the account, once it has answered, where the two clocks differ by more than a few answers may take."""
        ahead_s = self.opened.account.clock_ahead_s if self.opened else 0.0
        return datetime.now(UTC) - timedelta(seconds=ahead_s if abs(ahead_s) > CLOCKS_AGREE_S else 0)

    def rental(self, limits: Limits) -> tuple[Rental, Terms | None, Extension]:
        """Read charges, orders that wait, the terms, and the extension; write down what of the terms is missing.

        Raises:
            ProviderError: nobody answers, the account is another one, or this user does not see everything.
        """
        account, owner = account_and_owner(self.stack)
        self.opened, account_id = account, account.identity().account_id
        account.check_sees_all(f"guarding stack {self.stack}")
        charges, terms = account.charges(owner, known_machines(self.stack, self.home)), account.terms(owner)
        rental = named_rental(charges, self.now(), terms, account_id, owner)
        self.began = terms.first_order if terms else None
        if not rental.open:
            found = [each for each in account.everything() if each.owner == owner]
            to_come = account.to_come(owner, found, place_of(self.stack)[0].time_scale)
            # What closed before an order that waits belongs to another rental.
            rental = replace(rental, rows=() if to_come and not rental.id else rental.rows, is_coming=bool(to_come))
            return rental, terms, Extension()
        whole = limits.held_by(terms).terms(terms.first_order if terms else int(rental.began.timestamp()))
        if whole != terms:
            with suppress(ProviderError):  # It counts in any case; another computer does not see it.
                account.terms(owner, whole)
        return replace(rental, id=whole.rental_id(account_id, owner)), whole, account.extension(owner)

    def settings(self) -> AccountSettings | None:
        """Say what opens the account, as long as anything says it."""
        with suppress(*SENTENCES):
            return place_of(self.stack)[0]
        return None

    def account_id(self) -> str:
        """Say which account answered; empty where none did."""
        return self.opened.identity().account_id if self.opened else ""

    def run(self) -> Outcome | None:
        """Take what was just read, or ask the machines; None where they do not answer."""
        seen = self.outcome or asked_apart(self.stack)
        self.answers = seen is not None
        return seen

    def hold(self, stop_at: datetime | None, idle_s: float | None) -> None:
        """Let the machines stop the program by themselves then, or after so long without work, should no guard be awake."""
        if self.answers:
            at = stop_at.timestamp() if stop_at else None
            apart(HOLD_LIMIT_S, hold, stack=self.stack, stop_at=at, idle_s=idle_s, now=self.now().timestamp())

    def stop(self) -> str:
        """Do as `fab stop`, so that the program saves."""
        if guarded_owner(self.stack):
            return ELSEWHERE
        return _why(apart(STOP_LIMIT_S, stop, stack=self.stack))

    def fetch(self, limit_s: float) -> str:
        """Do as `fab fetch --everything`."""
        if guarded_owner(self.stack):
            return ELSEWHERE
        return _why(apart(limit_s, fetch_begun, stack=self.stack))

    def is_busy(self) -> bool:
        """Say whether another command, such as `make up`, works on the stack; one that Ctrl-Z has stopped does not."""
        return locks.is_busy(self.stack, self.home)

    def cancel(self, *, pressing: bool) -> str:
        """Do as `make down`, without what could not be fetched, and by the account alone where that fails.

        Args:
            pressing: interrupts a command that is in the way; else it waits for that one.
        """
        if pressing:
            locks.interrupt_holder(self.stack, self.home)
        elif self.is_busy():
            return f"another command works on stack {self.stack}"
        if not guarded_owner(self.stack):
            why = _why(apart(PRESSED_TIDY_S if pressing else TIDY_S, tidy, stack=self.stack))
            if not why:
                return ""
            if is_another(self.stack, self.began):
                return "it was rented again meanwhile"
            note(f"guard: `make down` did not cancel everything ({why}); the account is asked itself.")
        try:
            account, owner = account_and_owner(self.stack)
            return by_account(account, owner, place_of(self.stack)[0].time_scale)
        except SENTENCES as error:
            return str(error)


def tidy(stack: str) -> int:
    """Take a stack down as a person does who gives up what is not fetched."""
    return run_part(down, stack=stack, discard=True)


def asked_apart(stack: str) -> Outcome | None:
    """Return the state of the run, or None where its machines do not say it in time."""
    found = apart(ASK_LIMIT_S, outcome_or_none, stack=stack)
    return OUTCOME.validate_python(found) if found else None


def hold(stack: str, stop_at: float | None, idle_s: float | None, now: float) -> None:
    """Give the machines their limits, by a clock that is right; those that do not answer keep the guard from nothing."""
    with suppress(Exception):
        cluster = find_cluster(stack)
        if cluster and cluster.run:
            job.set_guard(launcher_of(cluster), cluster, HeldByMachines(stop_at, idle_s), now=now)


@command
def fetch_begun(stack: str) -> int:
    """Fetch every run whole; the hash of each file is taken on its machine and here."""
    if find_cluster(stack) is None or not unfetched_runs(stack):
        say("no run has begun on its machines")
        return 0
    return run_part(fetch, stack=stack, everything=True)


def _why(code: int | None) -> str:
    """Say how a command ended that failed; it has printed the reason."""
    if code is None:
        return "it took too long"
    return "for the reason above" if code else ""


@dataclass(frozen=True)
class Guard:
    """One guard of a stack: with its limits, its hands, the book of all guards, and where it speaks."""

    who: str
    limits: Limits
    hands: StackHands
    book: Book
    tell: Callable[[str], None] = note

    def look(self) -> Record:
        """Look once, and act where no other guard is at work."""
        with self._turn() as mine:
            record = self.watch()
            waits = record.verdict.fetch_by is None and self.hands.is_busy()
            return self._end(record) if record.verdict.step == "end" and mine and not waits else record

    def end(self, verdict: Verdict) -> Record | None:
        """Bring the rental to this end, or to that of a limit which is reached; None while another guard is at work."""
        with self._turn() as mine:
            if not mine:
                return None
            record = self.see()
            if record.verdict.step != "end":
                record = replace(record, verdict=verdict)
            if record.verdict.fetch_by is None and self.hands.is_busy():  # Perhaps with another job by now.
                self.tell("guard: nothing is cancelled while another command works on the stack.")
                return record
            # Of a queue nothing is rented once its job has ended, and Pulumi's state is still there.
            return self._end(record, ("end", "over"))

    def watch(self) -> Record:
        """Look and warn, tell the machines what they may hold by themselves, and leave the end to others."""
        record = self.see()
        verdict = record.verdict
        if verdict.step == "warn" and (verdict.code == FAILED or verdict.warning not in record.told):
            self.tell(f"guard: {verdict.why}.")
            record = replace(record, told=(*record.told, verdict.warning))
        self._keep(record)
        if verdict.step != "end" and record.rental and record.rental.open:
            self.hands.hold(verdict.due.begin if verdict.due else None, self.limits.idle_s)
        return record

    def see(self) -> Record:
        """Read account and machines, and decide; does nothing else."""
        before = self.book.newest()
        rental, terms, extension, unread = None, None, Extension(), ""
        if before and before.lives:
            rental, extension = before.rental, before.extension
        try:
            rental, terms, extension = self.hands.rental(self.limits)
        except ProviderError as error:
            unread = str(error)
        now = self.hands.now()
        is_rented = rental is not None and (rental.open or rental.is_coming)
        # Where nothing is rented, no other rental has begun, whatever the account still lists of the last one.
        if before and (
            before.rental is None or rental is None or (is_rented and not rental.goes_on_from(before.rental))
        ):
            lasting = {key: moment for key, moment in before.began.items() if key == "account"}
            before = replace(before, begun=None, told=(), began=lasting)
        before = before or Record(self.who, now, Verdict("record", "nothing was found of this rental before"))
        limits = self.limits.held_by(terms) if not unread else before.limits or self.limits
        run = self.hands.run() if unread or (rental and rental.open) else NO_RUN
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
        account, opens = self.hands.account_id() or before.account, self.hands.settings() or before.opens
        found = Record(self.who, now, verdict, rental, extension, begun, before.told, unread, began)
        return replace(found, limits=limits, account=account, opens=opens)

    def _turn(self) -> AbstractContextManager[bool]:
        newest = self.book.newest()
        is_over = bool(newest and newest.verdict.due and self.hands.now() > newest.verdict.due.last)
        return self.hands.alone(longest_s=TURN_S if is_over else LONGEST_FETCH_S)

    def _end(self, record: Record, cancels_at: tuple[str, ...] = ("end",)) -> Record:
        """Stop, fetch, cancel; what fails keeps a limit from nothing, and every other end from the cancellation.

        ``cancels_at`` are the verdicts with which it still cancels after the fetch.
        """
        verdict = record.verdict
        begun = record.begun or Begun(verdict.reason, record.at)
        record = self._keep(replace(record, begun=begun))
        costs = f", at {price(record.rental)}" if record.rental else ""
        self.tell(f"guard: {verdict.why}{costs}. Now it stops the program, fetches, and cancels everything.")
        if not (begun.has_fetched or begun.has_cancelled):
            stopped = self.hands.stop()
            if stopped:
                self.tell(f"guard: the program may still run: {stopped}")
            lost = self.hands.fetch(self._fetch_limit_s(verdict, begun_at=record.at))
            if lost and verdict.fetch_by is None:
                return self._alarm(record, f"not everything was fetched, so that nothing was cancelled: {lost}")
            if lost:
                self.tell(f"guard: not everything was fetched, and the limit leaves no time: {lost}")
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
                self.tell(f"guard: nothing is cancelled: {again.verdict.why}.")
                return self._keep(replace(again, begun=None))
            if verdict.fetch_by is None and self.hands.is_busy():  # A person's `make up` came while it was fetched.
                self.tell("guard: nothing is cancelled while another command works on the stack.")
                return record
        # What an account did not take is no cancellation: this computer's clock may be wrong, and the limit far off.
        is_cancelled = begun.has_cancelled or not record.unread
        record = self._keep(replace(record, begun=replace(begun, has_cancelled=is_cancelled)))
        failed = self.hands.cancel(pressing=verdict.fetch_by is not None)
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
        return max((until - self.hands.now()).total_seconds() - CANCEL_S, LEAST_FETCH_S)

    def _alarm(self, record: Record, why: str, code: int = FAILED) -> Record:
        self.tell(f"guard: {why}")
        return self._keep(replace(record, verdict=replace(record.verdict, why=why, code=code)))

    def _keep(self, record: Record) -> Record:
        self.book.write(record)
        return record


def _troubles(run: Outcome | None, unread: str) -> list[Trouble]:
    """Return what may not last for long."""
    if run is None:
        return ["account", "machines"] if unread else ["machines"]
    of_run: list[tuple[bool, Trouble]] = [
        (bool(unread), "account"),
        (run.state == "failed", "failed"),
        (run.state == "stalled", "stalled"),
        (run.idle_s is None, "idle"),
    ]
    return [trouble for is_so, trouble in of_run if is_so]
