"""An account that a person's command has opened: no engine is behind it, and it works with state and journal lost."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from microcluster.accounts.shared import order, sweep
from microcluster.accounts.shared.account import Account, Extension, Identity, Market, Quote, Resource, Terms
from microcluster.accounts.shared.errors import AccountError, CallError, ProviderError, unreadable
from microcluster.accounts.shared.order import Log, Operation, Session
from microcluster.accounts.shared.receipt import Charge, Receipt, receipt
from microcluster.core.home import Home, Owner, stack_of


@dataclass(frozen=True)
class OpenedAccount:
    """One account; every method raises ProviderError with a sentence for the person."""

    account: Account

    @property
    def is_emulated(self) -> bool:
        """Whether the account's machines are emulated, so that nobody pays."""
        return self.identity().is_emulated

    def identity(self) -> Identity:
        """Say whose account it is."""
        return self.account.whoami()

    def charges(self, owner: Owner, known_machines: Iterable[str] = ()) -> tuple[Charge, ...]:
        """List past and running charges as they are now, oldest first.

        Args:
            known_machines: ids that a state knows; the lists may not show them yet.
        """
        with self._reading("the bill"):
            journalled = self.account.journal(owner).accepted(self.account.machine)
            return tuple(self.account.charges(owner, {*known_machines, *journalled}))

    def charges_listed(self, owner: Owner) -> tuple[Charge, ...]:
        """List the same from the account's lists alone: quick, and up to two minutes behind."""
        with self._reading("the bill"):
            return tuple(self.account.charges(owner, exact=False))

    def quote(self, stack: str, nodes: int, order: Mapping[str, Any]) -> Quote:
        """Ask what machines of a stack would cost; its account must sell."""
        with self._reading("the price"):
            return self.account.quote(stack, nodes, order)  # type: ignore[attr-defined]

    def extension(self, owner: Owner, new: Extension | None = None) -> Extension:
        """Read how much more a person has allowed this rental than its stack file does, or write it."""
        with self._reading("how far the rental was extended"):
            return self.account.extension(owner, new)

    def terms(self, owner: Owner, new: Terms | None = None) -> Terms | None:
        """Read when the rental began and what limits it, or write it."""
        with self._reading("when the rental began"):
            return self.account.terms(owner, new)

    def check_sees_all(self, doing: str) -> None:
        """Refuse to take for absent what this user may not see."""
        with self._reading("the rights of its user"):
            self.account.check_sees_all(doing)

    def everything(self) -> tuple[Resource, ...]:
        """List resources with any mark of microcluster."""
        with self._reading("what bears a mark"):
            return tuple(self.account.resources())

    def to_come(self, owner: Owner, found: Iterable[Resource], time_scale: float) -> list[str]:
        """Describe orders that are not billed yet but may be or will be: the rental does not end before them.

        Args:
            found: what bears the mark.
        """
        machine = self.account.machine
        waiting = [each for each in found if each.is_alive and not each.is_billed and each.kind == machine]
        sentences = [f"{each} is ordered and not billed yet: the order waits" for each in waiting]
        with self._reading("the orders"):
            if isinstance(self.account, Market):
                sentences += _unshown(self.account, owner, time_scale)
        return sentences

    def cancel_all(self, owner: Owner, time_scale: float, tell: Callable[[str], None]) -> Receipt:
        """Cancel and remove whatever bears the mark, wait for what may still turn up, and return the receipt."""
        account = self.account
        with self._reading("what is left"):
            if not isinstance(account, Market):
                failures = self.remove(account.resources(owner), tell)
                if failures:
                    raise ProviderError("\n".join(failures))
                return receipt(account.charges(owner))
            stack = stack_of(Home.of().keys / owner.stack)
            return sweep.clean(self._operation(stack, tell, time_scale), account, owner)

    def remove(self, chosen: Iterable[Resource], tell: Callable[[str], None]) -> list[str]:
        """Cancel or remove what is chosen, each with its proof; return the sentences of those that failed."""
        return sweep.end_all(self._operation("any", tell), self.account, chosen)

    def _operation(self, stack: str, tell: Callable[[str], None], time_scale: float = 1.0) -> Operation:
        urn = f"urn:pulumi:{stack}::microcluster::pulumi:pulumi:Stack::{stack}"
        session = Session(lambda: self.account, time_scale, threading.Event())
        return Operation(urn, session, Log(tell, tell, tell), sweep.LIMIT_S)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """Turn a fault of the API while ``what`` is read into a sentence for the person."""
        try:
            yield
        except CallError as error:
            asked = f"reading {what} at {self.identity().endpoint} as {self.identity().username}"
            raise AccountError(unreadable(asked, error, "the key file", None)) from error


def _unshown(market: Market, owner: Owner, time_scale: float) -> list[str]:
    sentences = []
    for each in market.journal(owner).unresolved():
        status = order.evidence(market, owner, None, [each])
        if status is not None:
            sentences.append(f"{each.name}: {status.described}, and the account shows nothing of it yet")
        elif order.unsettled_s([each], market.settled_s, time_scale) > 0:
            sentences.append(
                f"the answer to the order of {each.name} at {each.at[:19]} UTC got lost; it may still turn up"
            )
    waiting = [each for each in market.orders(owner) if each.is_waiting and not each.is_shown]
    return sentences + [f"{each.described}, and the account shows no {market.machine} of it" for each in waiting[:1]]
