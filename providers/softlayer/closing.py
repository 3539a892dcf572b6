"""Cancelling what has a billing item of its own, at once, and proving that it is not billed any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from providers.softlayer import accepted, goods, money
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError, ProviderError, WaitError
from providers.softlayer.goods import Goods, Row
from providers.softlayer.placing import SETTLED_S
from providers.softlayer.waiting import Patience, Pending, wait_until

REASON = "No longer needed"
CLOSES_WITHIN_S = 180.0
"""An accepted cancellation shows in the account within this time, or it is one for later."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Ending:
    """What is to end, and how it is told from everything else."""

    kind: Goods
    id: str
    mark: str
    order: str | None = None
    """The order that made it, which finds it where its id has changed or its mark is missing."""
    before: Callable[[Row], str | None] = lambda row: None
    """Done before each attempt; a sentence says what is in the way."""

    def __str__(self) -> str:
        """Name it for a person."""
        return f"{self.kind.word} {self.id}"


def close(account: Account, ending: Ending, patience: Patience, tell: Tell) -> None:
    """Cancel a thing that bears the mark, or that our own order made, and return when the account shows no charge of it.

    Raises:
        ProviderError: it is still billed; the text says for how much, and until when if that is known.
    """
    closing = _Closing(account, ending)
    try:
        wait_until(f"{ending} found", closing.shown(patience.time_scale), patience, tell)
        wait_until(f"{ending} cancelled", closing.cancelled, patience, tell)
        wait_until(f"{ending} closed", closing.closed, patience.within(CLOSES_WITHIN_S), tell)
    except (WaitError, ApiError) as error:
        raise ProviderError(f"cancelling {ending}: {error} {closing.cost()}Run 'pulumi destroy' again.") from error


class _Closing:
    """One cancellation on its way."""

    def __init__(self, account: Account, ending: Ending) -> None:
        self._account, self._ending = account, ending
        self._order = goods.order_of_id(ending.id) or ending.order
        self._accepted = False
        self._item: Mapping[str, Any] | None = None

    def shown(self, time_scale: float) -> Callable[[], bool | Pending]:
        """Look for a trace of it: what was ordered only now may be in no list yet, and its absence proves nothing."""
        settled = time.monotonic() + SETTLED_S * time_scale

        def look() -> bool | Pending:
            if self._order is None or self._thing() or self._charge() or time.monotonic() >= settled:
                return True
            return Pending(f"the account shows nothing of order {self._order} yet")

        return look

    def cancelled(self) -> bool | Pending:
        """Bring the cancellation to its acceptance."""
        thing = self._thing()
        self._item = self._billed(thing)
        if self._item is None or self._accepted:
            return True
        obstacle = self._ending.before(thing) if thing else None
        if obstacle:
            return Pending(obstacle)
        try:
            self._account.api.once("Billing_Item", "cancelItem", True, True, REASON, "", id=int(self._item["id"]))
        except ApiError as error:
            if self._item.get("cancellationDate") and not error.is_weather:
                raise ProviderError(self._later()) from error
            # Refused because work is going on, lost on the way, or done already: the next look tells which.
            return Pending(f"the API did not accept the cancellation ({error.text})")
        self._accepted = True
        return True

    def closed(self) -> bool | Pending:
        """Look until it has no billing item."""
        self._item = self._billed(self._thing())
        if self._item is None:
            return True
        if self._item.get("cancellationDate"):
            return Pending(f"its billing item {self._item['id']} ends on {self._item['cancellationDate']}")
        return Pending(f"its billing item {self._item['id']} is not closed yet")

    def cost(self) -> str:
        """Say what it still costs, if it does."""
        if self._item is None:
            return ""
        until = f" until {self._item['cancellationDate']}" if self._item.get("cancellationDate") else ""
        return f"It is still billed at {money.rate(self._item)}{until}. "

    def _thing(self) -> Row | None:
        """Read it, if it is ours: by its mark, or because our own order made it, whatever a person made of its mark."""
        found = self._ending.kind.located(self._account.api, self._ending.id, self._order)
        if found is None:
            return None
        ours = self._ending.kind.bears(found, self._ending.mark) or (
            self._order and goods.order_id(found) == self._order
        )
        return found if ours else None

    def _billed(self, thing: Row | None) -> Mapping[str, Any] | None:
        """Read its billing item, through its order where no list shows the thing itself."""
        if thing:
            return thing.get("billingItem") or None
        item = self._charge()
        return None if item is None or item.get("cancellationDate") else item

    def _charge(self) -> Row | None:
        return accepted.charges(self._account, {self._order}).get(self._order) if self._order else None

    def _later(self) -> str:
        date = (self._item or {}).get("cancellationDate")
        return (
            f"cancelling {self._ending}: its billing item {(self._item or {}).get('id')} was cancelled before, "
            f"for {date}, and the API does not end it sooner. {self.cost()}Ask the vendor's support to end it now, or run "
            "'pulumi destroy' again after that date."
        )
