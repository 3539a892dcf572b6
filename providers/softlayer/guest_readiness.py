"""A guest on its way from its order to ready, and everything that can stop it there."""

from __future__ import annotations

import math
import time
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.closing import check_ours
from providers.rental.errors import ProviderError
from providers.rental.waiting import Pending, pause_s
from providers.softlayer import guest_view, order_status
from providers.softlayer.account import Account
from providers.softlayer.cached_lists import GUEST_MASK
from providers.softlayer.calls import SETTLED_S
from providers.softlayer.errors import ApiError
from providers.softlayer.guest_lookup import missing

IDLE_S = 30 * 60.0
"""An approved order on which nobody has worked for so long is lost; between two transactions there are seconds."""
REFRESH = "Run 'pulumi up --refresh'."


class GoneError(ProviderError):
    """The guest does not exist any more, and nothing is billed for it."""


class Building:
    """Looks at one guest, through the list that all waiters share, until it is ready."""

    def __init__(
        self,
        account: Account,
        owner: marks.Owner,
        guest_id: str,
        time_scale: float,
        fresh_until: float = math.inf,
    ) -> None:
        self.fresh_until = fresh_until
        self._account, self._owner, self._id, self._scale = account, owner, guest_id, time_scale
        self._began = self._seen = self._worked_on = time.monotonic()
        self._order: order_status.Order | None = None
        self.guest: dict[str, Any] | None = None
        """As last seen."""

    def look(self) -> guest_view.Guest | Pending:
        """Look once.

        Raises:
            ProviderError: it will never be ready.
        """
        guest = self.read()
        state = self._missing() if guest is None else self.assess(guest)
        return state if isinstance(state, Pending) else self._confirmed()

    def read(self) -> dict[str, Any] | None:
        """Read the guest; None while the account does not show it.

        Raises:
            ProviderError: it is not this stack's.
        """
        try:
            guest = self._account.guest(self._id, self._owner, self._age_s)
        except ApiError as error:
            if error.is_unready:
                return None
            raise
        if guest is not None:
            check_ours(guest_view.thing(guest), self._owner, "working on")
        return guest

    def assess(self, guest: dict[str, Any]) -> guest_view.Guest | Pending:
        """Say how far the guest is, as it was read just now."""
        self.guest, self._seen = guest, time.monotonic()
        if guest_view.is_cancelled(guest):
            raise ProviderError(f"{guest_view.described(guest)} was cancelled by somebody else. {REFRESH}")
        if guest_view.transaction_name(guest) or guest.get("provisionDate"):
            self._worked_on = time.monotonic()
            return guest_view.readiness(guest)
        return self._idle(guest)

    def _confirmed(self) -> guest_view.Guest | Pending:
        # The list that said "ready" may lag behind a cancellation; the guest itself does not.
        guest = self._account.api.find("Virtual_Guest", self._id, GUEST_MASK)
        return self._missing() if guest is None else self.assess(guest)

    @property
    def _age_s(self) -> float:
        # Half a pause old is good enough, and makes the number of calls the same for one machine and for sixty-four.
        return pause_s(time.monotonic() - self._began, self._scale) / 2

    def _idle(self, guest: dict[str, Any]) -> Pending:
        self._order = self._order_of(guest)
        if order_status.is_refused(self._order):
            raise ProviderError(
                f"{guest_view.described(guest)} will not be built: {order_status.described(self._order)}. {REFRESH}"
            )
        if order_status.is_waiting(self._order):
            self._worked_on = time.monotonic()
            return Pending(
                f"{order_status.described(self._order)}, which a person at the vendor or in the account has to approve"
            )
        if self._since(self._worked_on) > IDLE_S:
            raise ProviderError(
                f"{guest_view.described(guest)}: {order_status.described(self._order)}, and nothing has been done on it for "
                f"{IDLE_S / 60:.0f} minutes. Ask the vendor, or end it with 'pulumi destroy'."
            )
        return guest_view.readiness(guest)

    def _missing(self) -> Pending:
        if self._order is not None:
            self._order = self._order_of(self.guest or {})
            if order_status.is_refused(self._order):
                raise ProviderError(
                    f"guest {self._id} will not be built: {order_status.described(self._order)}. {REFRESH}"
                )
        # Taken before the look: what is overdue by then is not fresh any more.
        is_overdue = self._since(self._seen) > SETTLED_S
        # A fresh guest answers "not found" for a while, and lists lag: its bill or time turns this into a fact.
        state = missing(
            self._account, self._owner, self._id, fresh=time.monotonic() < self.fresh_until, max_age_s=self._age_s
        )
        if state is None:
            raise GoneError(
                f"the account does not know guest {self._id} any more, and nothing is billed for it. {REFRESH}"
            )
        if is_overdue:
            raise ProviderError(
                f"the account has not shown guest {self._id} for {SETTLED_S:.0f} s: {state.detail}. It may be billed, so nothing "
                "is ordered instead of it. Run the command again; if this stays, ask the vendor what became of it."
            )
        return state

    def _order_of(self, guest: dict[str, Any]) -> order_status.Order | None:
        listed = [] if guest_view.is_billed(guest) else self._account.order_list.under(self._owner, self._age_s)
        return order_status.of_guest(guest, listed)

    def _since(self, moment: float) -> float:
        return (time.monotonic() - moment) / self._scale
