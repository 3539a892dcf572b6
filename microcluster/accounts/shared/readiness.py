"""A machine on its way from its order to ready, and everything that can stop it there."""

import time
from collections.abc import Callable
from functools import cached_property

from microcluster.accounts.shared.account import Market, OrderStatus, Pending, Resource
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.order import SHORTEST_PAUSE_S, Operation, pause_s, unsettled_s

IDLE_S = 30 * 60.0
"""An approved order on which nobody has worked for so long is lost; between two transactions there are seconds."""
ALL_ORDERED_S = 3.0
"""Time until the orders of sixty-four machines are sent; until the first is ready no call has to wait."""
REFRESH = "Run 'pulumi up --refresh'."


class GoneError(ProviderError):
    """The machine does not exist any more, and nothing is billed for it."""


class Readiness:
    """Looks at one machine, through the list that all waiters share, until it is ready."""

    def __init__(self, op: Operation, market: Market, sought: Resource) -> None:
        """Args:
        sought: its kind, id, name and owner count.
        """
        self.what, self.sought = sought.described, sought
        self.is_machine = sought.kind == market.machine
        self.seen: Resource | None = None
        """The machine as last seen."""
        self._op, self._market, self._owner = op, market, sought.owner
        self._began = self._seen_at = self._worked_on = time.monotonic()
        self._order: OrderStatus | None = None

    def wait(self, meanwhile: Callable[[Resource], None] | None = None) -> Resource:
        """Return the machine once it is ready.

        Args:
            meanwhile: what is done to it once while it is built; not where it is ready sooner than all are ordered.

        Raises:
            ProviderError: it will never be, or the time is over.
        """

        if self.is_machine and self._fresh_until:
            # The list that all share can show it by then; sooner each of sixty-four would be asked for by itself.
            self._op.pause(SHORTEST_PAUSE_S)

        def look() -> Resource | Pending:
            nonlocal meanwhile
            found = self.look()
            if meanwhile and self.seen and isinstance(found, Pending) and self._since(self._began) >= ALL_ORDERED_S:
                meanwhile(self.seen)
                meanwhile = None
            return found

        return self._op.wait_until(f"{self.what} ready", look)

    def look(self) -> Resource | Pending:
        """Look once.

        Raises:
            ProviderError: it will never be ready.
        """
        found = self.read()
        state = self.assess(found) if isinstance(found, Resource) else found
        if isinstance(state, Pending) or not self.is_machine:
            return state
        # The list that said "ready" may lag behind a cancellation; the machine itself does not.
        found = self.read(is_exact=True)
        return self.assess(found) if isinstance(found, Resource) else found

    def read(self, *, is_exact: bool = False) -> Resource | Pending:
        """Read the machine; ``Pending`` while the account does not show it.

        Raises:
            GoneError: it is certainly gone.
            ProviderError: it is not this stack's, or has not been shown for too long.
        """
        # Taken before the look: what is overdue by then is not fresh any more.
        is_overdue = self._since(self._seen_at) > self._market.settled_s
        max_age_s = 0.0 if is_exact or not self.is_machine else self._age_s
        is_fresh = time.monotonic() < self._fresh_until
        resource = self._market.find(self.sought.kind, self.sought.id, self._owner, fresh=is_fresh, max_age_s=max_age_s)
        if isinstance(resource, Resource):
            resource.check_ours(self._owner, "working on")
            return resource
        if self._order is not None and self.seen is not None:
            self._read_order(self.seen)
        if resource is None:
            raise GoneError(f"the account does not know it any more, and nothing is billed for it. {REFRESH}")
        if is_overdue:
            raise ProviderError(
                f"the account has not shown {self.what} for {self._market.settled_s:.0f} s: {resource.detail}. It may be "
                "billed, so nothing is ordered instead of it. Run the command again; if this stays, ask the vendor what "
                "became of it."
            )
        return resource

    def assess(self, machine: Resource) -> Resource | Pending:
        """Say how far the machine is, as it was read just now."""
        self.seen, self._seen_at = machine, time.monotonic()
        if not machine.is_alive:
            raise ProviderError(f"{machine.described} was cancelled by somebody else. {REFRESH}")
        if machine.work or machine.is_built:
            self._worked_on = time.monotonic()
            return machine.unready or machine
        order = self._read_order(machine)
        if order is not None and order.is_waiting:
            self._worked_on = time.monotonic()
            return Pending(f"{order.described}, which a person at the vendor or in the account has to approve")
        if self._since(self._worked_on) > IDLE_S:
            raise ProviderError(
                f"{machine.described}: {order.described if order else 'its order is in no list'}, and nothing has been done on "
                f"it for {IDLE_S / 60:.0f} minutes. Ask the vendor, or end it with 'pulumi destroy'."
            )
        return machine.unready or machine

    def _read_order(self, machine: Resource) -> OrderStatus | None:
        self._order = machine.order
        if machine.order is None and not machine.is_billed:
            listed = self._market.orders(self._owner, self._age_s)
            self._order = next((each for each in listed[::-1] if machine.called in each.hostnames), None)
        if self._order is not None and self._order.is_refused:
            raise ProviderError(f"{machine.described} will not be built: {self._order.described}. {REFRESH}")
        return self._order

    @cached_property
    def _fresh_until(self) -> float:
        return fresh_until(self._op, self._market, self.sought)

    @property
    def _age_s(self) -> float:
        # Half a pause old is good enough, and makes the number of calls the same for one machine and for sixty-four.
        return self._op.scaled(pause_s(self._since(self._began))) / 2

    def _since(self, moment: float) -> float:
        return (time.monotonic() - moment) / self._op.session.time_scale


def fresh_until(op: Operation, market: Market, sought: Resource) -> float:
    """Return until which moment of ``time.monotonic`` the account need not show what was ordered; 0 if it must by now."""
    ordered = op.journal(sought.owner).accepted(sought.kind).get(sought.id)
    left_s = unsettled_s([ordered], market.settled_s, op.session.time_scale) if ordered else 0.0
    return time.monotonic() + op.scaled(left_s) if left_s else 0.0


def certain(op: Operation, market: Market, sought: Resource) -> Resource | None:
    """Look until it is certain whether a thing exists: forgetting one that was ordered only now would order it twice.

    Args:
        sought: its kind, id and owner count.

    Raises:
        WaitError: nobody can know yet.
    """
    until = fresh_until(op, market, sought)

    def look() -> tuple[Resource | None] | Pending:
        found = market.find(sought.kind, sought.id, sought.owner, fresh=time.monotonic() < until)
        return found if isinstance(found, Pending) else (found,)

    return op.wait_until(f"certainty about {sought.kind} {sought.id}", look, 2 * market.settled_s)[0]
