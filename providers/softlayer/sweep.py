"""The end of a stack: whatever still bears its mark is cancelled, and the account shows that nothing is billed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer import (
    cancel_guest,
    guest_view,
    idempotent_order,
    marked_inventory,
    order_guest,
    order_status,
    rights,
    security_group,
    ssh_key,
)
from providers.softlayer.account import Account
from providers.softlayer.billing import Receipt, receipt
from providers.softlayer.guest_lookup import sight

SWEEPERS = 16


def clean(op: Operation, account: Account, owner: marks.Owner) -> Receipt:
    """Cancel what no state knows, wait until nothing more can turn up, and return the receipt.

    Raises:
        ProviderError: something is still billed, or cannot be removed; the text has every failure.
    """
    cleaning = _Cleaning(op, account, owner)
    return wait_until(f"nothing with mark {owner.mark} is billed", cleaning.look, op.deadline, op.log.progress)


class _Cleaning:
    """Sweeps and looks until the account is clean and every order that was sent is known to have made nothing more."""

    def __init__(self, op: Operation, account: Account, owner: marks.Owner) -> None:
        self._op, self._account, self._owner = op, account, owner
        self._journal = op.journal(owner.mark)
        self._swept_at = time.monotonic()
        self._warned: set[str] = set()

    def look(self) -> Receipt | Pending:
        uncertain = self._sweep()
        unresolved = self._journal.unresolved(self._account.identity().account_id)
        if idempotent_order.unsettled_s(unresolved, self._op.deadline.time_scale) > 0:
            uncertain.append(f"the answer to the order of {unresolved[-1].name} got lost, and it may still turn up")
        if uncertain:
            return Pending(uncertain[0])
        for each in unresolved:
            order = idempotent_order.standing(self._account, self._owner, each)
            if order is not None and not self._is_settled():
                return Pending(
                    f"{order_status.described(order)}, and the account does not show that what it made is over"
                )
            idempotent_order.give_up(self._account, self._journal, each)
        return self._proof()

    def _sweep(self) -> list[str]:
        """Cancel and remove, and return what cannot be known yet."""
        seen = self._seen()
        living = [each for each, guest in seen.items() if isinstance(guest, dict) and guest_view.is_alive(guest)]
        if living:
            self._op.log.warn(f"Cancels guests that no state file knows: {', '.join(living)}.")
        failures = self._close_all(order_guest.KIND, living)
        failures += self._close_all(ssh_key.KIND, self._fresh_ids(ssh_key.KIND))
        failures += self._close_all(security_group.KIND, self._fresh_ids(security_group.KIND))
        found = marked_inventory.everything(self._account)
        self._report_other_stacks(found)
        rest = [each for each in found if self._owner.has(each.owner) and each.kind != marked_inventory.GUEST]
        failures += marked_inventory.remove_all(self._account, rest, self._op.deadline, self._op.log.progress)
        if failures:
            raise ProviderError("\n".join(failures))
        if living or rest:
            self._swept_at = time.monotonic()
        return [guest.detail for guest in seen.values() if isinstance(guest, Pending)]

    def _report_other_stacks(self, found: Iterable[marked_inventory.Belonging]) -> None:
        for each in marked_inventory.of_other_stacks(found, self._owner):
            self._warn(f"{each}.")

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._op.log.warn(sentence)
        self._warned.add(sentence)

    def _seen(self) -> dict[str, dict[str, Any] | Pending]:
        """Read what may be alive: by the list, which may lag, and by the journal, which may be lost."""
        listed = [str(each["id"]) for each in self._account.guest_list.under(self._owner) if guest_view.is_alive(each)]
        account_id = self._account.identity().account_id
        accepted = set(self._journal.accepted(account_id, order_guest.KIND))
        settled = accepted - set(self._fresh_ids(order_guest.KIND))
        seen: dict[str, dict[str, Any] | Pending] = {}
        for each in sorted({*listed, *accepted}):
            guest = sight(self._account, self._owner, each, partial(settled.isdisjoint, [each]))
            if guest is None and each in settled:
                self._journal.closed(account_id, order_guest.KIND, each)
            elif isinstance(guest, dict) and each in settled and not marks.guest_is(guest, self._owner):
                self._warn(f"{guest_view.described(guest)} was ordered for this stack and renamed. It is left alone.")
            elif guest is not None:
                seen[each] = guest
        return seen

    def _fresh_ids(self, kind: str) -> list[str]:
        return list(idempotent_order.fresh(self._op, self._account, self._owner.mark, kind))

    def _close_all(self, kind: str, ids: list[str]) -> list[str]:
        """Act on all, and return the sentences of those that failed: one that cannot be cleaned does not keep the rest."""
        with ThreadPoolExecutor(SWEEPERS) as pool:
            return [failure for failure in pool.map(partial(self._close, kind), ids) if failure]

    def _close(self, kind: str, object_id: str) -> str | None:
        account, deadline, tell = self._account, self._op.deadline, self._op.log.progress
        try:
            if kind == order_guest.KIND:
                cancel_guest.close(account, object_id, self._owner, deadline, tell)
            elif kind == ssh_key.KIND:
                ssh_key.remove(account, object_id, self._owner)
            else:
                security_group.remove(account, object_id, self._owner, deadline, tell)
        except ProviderError as error:
            return str(error)
        self._journal.closed(account.identity().account_id, kind, object_id)
        return None

    def _proof(self) -> Receipt | Pending:
        # A receipt without them would be clean, and untrue about the money.
        unlisted = self._without_charge()
        if unlisted:
            return Pending(f"the account's list of charges does not show guest {', '.join(unlisted)} yet")
        found = receipt(self._account.charges(self._owner, self._fresh_ids(order_guest.KIND)))
        still_open = [f"{row.id} ({row.host}, {row.per_hour:f} an hour)" for row in found.rows if row.is_open]
        if not still_open:
            rights.check_to_prove(self._account)
            return found
        if self._is_settled():
            raise ProviderError(
                f"proving that nothing is billed any more: billing item {', '.join(still_open)} of mark {self._owner.mark} is "
                "open, and nothing that could be cancelled is behind it. Run 'fab receipt', and ask the vendor to close it."
            )
        return Pending(f"still billed: {', '.join(still_open)}")

    def _is_settled(self) -> bool:
        """Tell whether the lists must show the last cancellation by now: they show one as late as an order."""
        return (time.monotonic() - self._swept_at) / self._op.deadline.time_scale > idempotent_order.SETTLED_S

    def _without_charge(self) -> list[str]:
        """Return what was ordered only now under a name that the list of charges shows less often than it was ordered."""
        charged = Counter(str(item.get("hostName")) for item in self._account.bill_list.under(self._owner))
        made = self._journal.made(self._account.identity().account_id, order_guest.KIND)
        ordered = Counter(str(intent.hostname) for intent in made.values())
        recent = idempotent_order.recent(self._op, self._account, self._owner.mark, order_guest.KIND)
        return sorted(
            each for each, intent in recent.items() if charged[str(intent.hostname)] < ordered[str(intent.hostname)]
        )
