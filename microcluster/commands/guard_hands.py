"""What a guard does with a stack, by the commands that a person has for the same; the seam between `microcluster.guard` and the commands."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from core.home import Home, Owner
from core.plain_text import note
from microcluster.analysis.run_state import Outcome
from microcluster.commands.command import CommandFailed, run_part_within
from microcluster.commands.down import STOP_LIMIT_S, take_down
from microcluster.commands.fetch import fetch
from microcluster.commands.holdings import known_machines
from microcluster.commands.job import stop
from microcluster.commands.money import account_and_mark, last_rental
from microcluster.commands.stack_outputs import find_cluster, launcher_of
from microcluster.commands.status import observed_or_none
from microcluster.config import stack as config
from microcluster.guard.decision import Rental, Run, rental_of
from microcluster.jobs.cluster_facts import Guard as HeldByMachines
from microcluster.lifecycle import locks
from microcluster.remote import job
from providers.rental.account import Extension
from providers.rental.errors import ProviderError
from providers.rental.opened_account import OpenedAccount
from providers.rental.receipt import Charge

CLOCKS_AGREE_S = 120


@dataclass(frozen=True)
class StackHands:
    """What a guard does with a stack, by the commands that a person has for the same."""

    stack: str
    home: Home
    outcome: Outcome | None = None
    opened: list[OpenedAccount] = field(default_factory=list)
    """The account, once it has answered."""

    @contextmanager
    def alone(self, *, longest_s: float) -> Iterator[bool]:
        """Hold a lock of the guards beside the stack's own, which `make up` holds while it watches."""
        of_guards = f"{self.stack}.guard"
        with ExitStack() as held:
            try:
                held.enter_context(locks.alone_on(of_guards, "fab guard", self.home))
                is_mine = True
            except CommandFailed as busy:
                note(str(busy))
                is_mine = False
                if locks.held_s(of_guards, self.home) > longest_s:
                    locks.interrupt_holder(of_guards, self.home)
            yield is_mine

    def now(self) -> datetime:
        """Believe the account where the two clocks differ by more than a few answers may take."""
        ahead_s = max((each.account.clock_ahead_s for each in self.opened), key=abs, default=0.0)
        return datetime.now(UTC) - timedelta(seconds=ahead_s if abs(ahead_s) > CLOCKS_AGREE_S else 0)

    def rental(self) -> tuple[Rental, Extension]:
        """Read charges, orders that wait, and the extension."""
        account, mark = account_and_mark(self.stack)
        self.opened[:] = [account]
        owner = Owner(self.stack, mark)
        rows = of_last_rental(account.charges(owner, known_machines(self.stack, self.home)))
        rental = rental_of(rows, self.now())
        if rental.open:
            return rental, account.extension(owner)
        return rental_of(rows, self.now(), is_coming=bool(self._to_come(account, owner))), Extension()

    def _to_come(self, account: OpenedAccount, owner: Owner) -> list[str]:
        found = [each for each in account.everything() if owner.has(each.owner)]
        return account.to_come(owner, found, config.read_account(self.stack).time_scale)

    def run(self) -> Run:
        """Take what was just read, or ask."""
        seen = (None, self.outcome) if self.outcome else observed_or_none(self.stack)
        if seen is None:
            return Run()
        outcome = seen[1]
        return Run(outcome.state, outcome.cause, outcome.idle_s, outcome.armed, outcome.is_held)

    def hold(self, stop_at: datetime | None, idle_s: float | None) -> str:
        """Write it into the run's folder, for the supervisor."""
        try:
            cluster = find_cluster(self.stack)
            if cluster and cluster.run:
                limits = HeldByMachines(stop_at.timestamp() if stop_at else None, idle_s)
                job.set_guard(launcher_of(cluster), cluster, limits, now=self.now().timestamp())
        except Exception as error:  # noqa: BLE001 - machines that do not answer keep the guard from nothing
            return str(error)
        return ""

    def stop(self) -> str:
        """Do as `fab stop`."""
        return _why(run_part_within(STOP_LIMIT_S, stop, stack=self.stack))

    def fetch(self, limit_s: float) -> str:
        """Do as `fab fetch --everything`."""
        return _why(run_part_within(limit_s, fetch, stack=self.stack, everything=True))

    def is_busy(self) -> bool:
        """Ask for the stack's own lock."""
        return locks.is_busy(self.stack, self.home)

    def cancel(self, *, pressing: bool) -> str:
        """Do as `make down`; what could not be fetched is given up."""
        try:
            return _why(take_down(self.home, self.stack, "discard"))
        except (CommandFailed, ProviderError) as error:
            if pressing:
                locks.interrupt_holder(self.stack, self.home)
            return str(error)


def of_last_rental(charges: Iterable[Charge]) -> list[Charge]:
    """Return what a guard counts: the last rental, and all starts of its jobs in a queue."""
    rows = tuple(charges)
    last = {row.id for row in last_rental(rows).shown}
    return [row for row in rows if row.id in last]


def _why(code: int | None) -> str:
    """Say how a command ended that failed; it has printed the reason."""
    return "it took too long" if code is None else "for the reason above" if code else ""
