"""A machine on its way from its order to ready, and everything that can stop it there."""

import time

from providers.rental.backend import Backend, OrderStatus, Thing
from providers.rental.closing import check_ours
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.reconcile import fresh_until, settled_s
from providers.rental.waiting import Pending, pause_s, wait_until

IDLE_S = 30 * 60.0
"""An approved order on which nobody has worked for so long is lost; between two transactions there are seconds."""
REFRESH = "Run 'pulumi up --refresh'."


class GoneError(ProviderError):
    """The machine does not exist any more, and nothing is billed for it."""


class Readiness:
    """Looks at one machine, through the list that all waiters share, until it is ready."""

    def __init__(self, op: Operation, backend: Backend, owner: Owner, machine_id: str, name: str) -> None:
        self.what = f"{backend.machine_label} {machine_id}" + (f" ({name})" if name else "")
        self.machine_id = machine_id
        self.seen: Thing | None = None
        """The machine as last seen."""
        self._op, self._backend, self._owner = op, backend, owner
        self._fresh_until: float | None = None
        self._began = self._seen_at = self._worked_on = time.monotonic()
        self._order: OrderStatus | None = None

    def wait(self) -> Thing:
        """Return the machine once it is ready.

        Raises:
            ProviderError: it will never be, or the time is over.
        """
        return wait_until(f"{self.what} ready", self.look, self._op.deadline, self._op.log.progress)

    def look(self) -> Thing | Pending:
        """Look once.

        Raises:
            ProviderError: it will never be ready.
        """
        found = self.read()
        state = self.assess(found) if isinstance(found, Thing) else found
        if isinstance(state, Pending):
            return state
        # The list that said "ready" may lag behind a cancellation; the machine itself does not.
        found = self.read(is_exact=True)
        return self.assess(found) if isinstance(found, Thing) else found

    def read(self, *, is_exact: bool = False) -> Thing | Pending:
        """Read the machine; ``Pending`` while the account does not show it.

        Raises:
            GoneError: it is certainly gone.
            ProviderError: it is not this stack's, or has not been shown for too long.
        """
        # Taken before the look: what is overdue by then is not fresh any more.
        is_overdue = self._since(self._seen_at) > settled_s(self._backend)
        max_age_s = 0.0 if is_exact else self._age_s
        machine, is_fresh = self._backend.machine, time.monotonic() < self._freshness()
        found = self._backend.find(machine, self.machine_id, self._owner, fresh=is_fresh, max_age_s=max_age_s)
        if isinstance(found, Thing):
            check_ours(found, self._owner, "working on")
            return found
        if self._order is not None and self.seen is not None:
            self._read_order(self.seen)
        if found is None:
            raise GoneError(f"the account does not know it any more, and nothing is billed for it. {REFRESH}")
        if is_overdue:
            raise ProviderError(
                f"the account has not shown {self.what} for {settled_s(self._backend):.0f} s: {found.detail}. It may be "
                "billed, so nothing is ordered instead of it. Run the command again; if this stays, ask the vendor what "
                "became of it."
            )
        return found

    def assess(self, machine: Thing) -> Thing | Pending:
        """Say how far the machine is, as it was read just now."""
        self.seen, self._seen_at = machine, time.monotonic()
        if not machine.is_alive:
            raise ProviderError(f"{machine.label} was cancelled by somebody else. {REFRESH}")
        if machine.work or machine.is_built:
            self._worked_on = time.monotonic()
            return machine.unready or machine
        order = self._read_order(machine)
        if order is not None and order.is_waiting:
            self._worked_on = time.monotonic()
            return Pending(f"{order.described}, which a person at the vendor or in the account has to approve")
        if self._since(self._worked_on) > IDLE_S:
            raise ProviderError(
                f"{machine.label}: {order.described if order else 'its order is in no list'}, and nothing has been done on "
                f"it for {IDLE_S / 60:.0f} minutes. Ask the vendor, or end it with 'pulumi destroy'."
            )
        return machine.unready or machine

    def _read_order(self, machine: Thing) -> OrderStatus | None:
        self._order = self._backend.order_of(machine, self._age_s)
        if self._order is not None and self._order.is_refused:
            raise ProviderError(f"{machine.label} will not be built: {self._order.described}. {REFRESH}")
        return self._order

    def _freshness(self) -> float:
        if self._fresh_until is None:
            mark, machine = self._owner.mark, self._backend.machine
            self._fresh_until = fresh_until(self._op, self._backend, mark, machine, self.machine_id)
        return self._fresh_until

    @property
    def _age_s(self) -> float:
        # Half a pause old is good enough, and makes the number of calls the same for one machine and for sixty-four.
        scale = self._op.deadline.time_scale
        return pause_s(time.monotonic() - self._began, scale) / 2

    def _since(self, moment: float) -> float:
        return (time.monotonic() - moment) / self._op.deadline.time_scale
