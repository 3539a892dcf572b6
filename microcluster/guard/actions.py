"""Readings and actions of a guard on one rental, by what a person has for the same: stop, fetch, down.

Each may be repeated, also by another guard.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Extension, Terms
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.rental import CLOCKS_AGREE_S, Rental, named_rental
from microcluster.analysis.run_state import OUTCOME, Outcome
from microcluster.command_line.apart import apart, run_part_apart
from microcluster.command_line.parts import SENTENCES
from microcluster.core.home import Home
from microcluster.core.plain_text import note
from microcluster.guard.decision import CANCEL_S, Limits
from microcluster.jobs.cluster_facts import MachineLimits
from microcluster.lifecycle import locks
from microcluster.remote import job
from microcluster.rental.account import account_and_owner, by_account, guarded_owner, is_another, place_of
from microcluster.rental.down import STOP_LIMIT_S, tidy
from microcluster.rental.holdings import known_machines
from microcluster.run.cluster import find_cluster, launcher_of
from microcluster.run.fetch import fetch_begun
from microcluster.run.job import stop_run
from microcluster.run.status import outcome_or_none
from microcluster.setup.errors import CommandFailed, of_the_system

ASK_LIMIT_S, HOLD_LIMIT_S = 45, 15
"""Limits for reading the run's state from its machines, and for sending them their limits."""
ELSEWHERE = "the computer that ordered it knows its machines, and this one does not."
TIDY_S, PRESSED_TIDY_S = 300, CANCEL_S
"""Limits of a cancellation by Pulumi; then the account's own calls cancel."""


@dataclass
class RentalActions:
    """Readings and actions of a guard. An action returns why it failed, or an empty text."""

    stack: str
    home: Home
    outcome: Outcome | None = None
    """State of the run, where the caller has just read it."""
    opens: AccountSettings | None = None
    """Account of the stack file, where the caller has read that."""
    opened: OpenedAccount | None = None
    """Account that has answered; None before."""
    answers: bool = True
    """Whether the machines answered when they were asked last."""
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
        """Return the time by the account's clock where it differs by more than a few answers may take, else by this computer's."""
        ahead_s = self.opened.account.clock_ahead_s if self.opened else 0.0
        return datetime.now(UTC) - timedelta(seconds=ahead_s if abs(ahead_s) > CLOCKS_AGREE_S else 0)

    def rental(self, limits: Limits) -> tuple[Rental, Terms | None, Extension]:
        """Read charges, orders that wait, the terms, and the extension; write down what of the terms is missing.

        Raises:
            ProviderError: nobody answers, the account is another one, or this user does not see everything.
        """
        account, owner = account_and_owner(self.stack, self.opens)
        self.opened, account_id = account, account.identity().account_id
        account.check_sees_all(f"guarding stack {self.stack}")
        charges, terms = account.charges(owner, known_machines(self.stack, self.home)), account.terms(owner)
        rental = named_rental(charges, self.now(), terms, account_id, owner)
        self.began = terms.first_order if terms else None
        if not rental.open:
            found = [each for each in account.everything() if each.owner == owner]
            to_come = account.to_come(owner, found, place_of(self.stack, self.opens).settings.time_scale)
            # What closed before an order that waits belongs to another rental.
            rental = replace(rental, rows=() if to_come and not rental.id else rental.rows, is_coming=bool(to_come))
            return rental, terms, Extension()
        whole = limits.held_by(terms).terms(terms.first_order if terms else int(rental.began.timestamp()))
        if whole != terms:
            with suppress(ProviderError):  # It counts in any case; another computer does not see it.
                account.terms(owner, whole)
        return replace(rental, id=whole.rental_id(account_id, owner)), whole, account.extension(owner)

    def settings(self) -> AccountSettings | None:
        """Return what opens the account; None where neither outputs, stack file nor a record say it."""
        with suppress(*SENTENCES):
            return place_of(self.stack, self.opens).settings
        return None

    def account_id(self) -> str:
        """Return the id of the account that answered; empty where none did."""
        return self.opened.identity().account_id if self.opened else ""

    def run(self) -> Outcome | None:
        """Return the state of the run, as just read or from its machines; None where they do not answer."""
        seen = self.outcome or asked_apart(self.stack)
        self.answers = seen is not None
        return seen

    def enforce(self, stop_at: datetime | None, idle_s: float | None) -> None:
        """Tell the machines when to stop the program by themselves, by time or without work, should no guard be awake."""
        if self.answers:
            at = stop_at.timestamp() if stop_at else None
            apart(HOLD_LIMIT_S, set_limits, stack=self.stack, stop_at=at, idle_s=idle_s, now=self.now().timestamp())

    def stop(self) -> str:
        """Stop the program as `fab stop` does, so that it saves; return why it may still run."""
        if guarded_owner(self.stack):
            return ELSEWHERE
        return _why(run_part_apart(STOP_LIMIT_S, stop_run, stack=self.stack))

    def fetch(self, limit_s: float) -> str:
        """Fetch everything as `fab fetch --everything` does; return why not all came."""
        if guarded_owner(self.stack):
            return ELSEWHERE
        return _why(run_part_apart(limit_s, fetch_begun, stack=self.stack))

    def is_busy(self) -> bool:
        """Say whether another command, such as `make up`, works on the stack; one that Ctrl-Z has stopped does not."""
        return locks.is_busy(self.stack, self.home)

    def cancel(self, *, pressing: bool) -> str:
        """Cancel as `make down` does, without what could not be fetched, and by the account alone where that fails.

        Args:
            pressing: interrupts a command that is in the way; else it waits for that one.
        """
        if pressing:
            locks.interrupt_holder(self.stack, self.home)
        elif self.is_busy():
            return f"another command works on stack {self.stack}"
        if not guarded_owner(self.stack):
            why = _why(run_part_apart(PRESSED_TIDY_S if pressing else TIDY_S, tidy, stack=self.stack))
            if not why:
                return ""
            if is_another(self.stack, self.began):
                return "it was rented again meanwhile"
            note(f"guard: `make down` did not cancel everything ({why}); the account is asked itself.")
        try:
            account, owner = account_and_owner(self.stack, self.opens)
            return by_account(account, owner, place_of(self.stack, self.opens).settings.time_scale)
        except SENTENCES as error:
            return str(error)


def asked_apart(stack: str) -> Outcome | None:
    """Return the state of the run, read in a process apart; None where its machines do not answer in time."""
    found = apart(ASK_LIMIT_S, outcome_or_none, stack=stack)
    return OUTCOME.validate_python(found) if found else None


def set_limits(stack: str, stop_at: float | None, idle_s: float | None, now: float) -> None:
    """Send the machines their limits, by the account's clock; silent machines keep the guard from nothing."""
    with suppress(Exception):
        cluster = find_cluster(stack)
        if cluster and cluster.run:
            job.set_guard(launcher_of(cluster), cluster, MachineLimits(stop_at, idle_s), now=now)


def _why(code: int | None) -> str:
    """Return why a part failed, by its exit code; it has printed the reason."""
    if code is None:
        return "it took too long"
    return "for the reason above" if code else ""
