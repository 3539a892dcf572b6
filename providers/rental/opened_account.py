"""An account that a person's command has opened: no engine is behind it, and it works with state and journal lost."""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from providers.rental import reconcile, sweep
from providers.rental.backend import Backend, Belonging
from providers.rental.journal import Journal
from providers.rental.operation import Identity, Operation, Session
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Charge, Receipt
from providers.rental.waiting import Deadline

CANCEL_LIMIT_S = 90 * 60.0


@dataclass(frozen=True)
class OpenedAccount:
    """One account; every method raises ProviderError with a sentence for the person.

    Attributes:
        is_emulated: whether it answers on this computer, so that its machines are emulated and nobody pays.
        reading: turns a fault of the API, while what is named is read, into a sentence.
        listed_charges: what was and is billed, from the account's lists alone: quick, and up to two minutes behind.
        hidden: what of the account this user does not see, as a sentence.
    """

    backend: Backend
    is_emulated: bool
    reading: Callable[[str], AbstractContextManager[None]]
    listed_charges: Callable[[Owner], Sequence[Charge]]
    hidden: Callable[[], str | None]

    def identity(self) -> Identity:
        """Say whose account it is."""
        return self.backend.identity()

    def charges(self, owner: Owner, known_machines: Iterable[str] = ()) -> tuple[Charge, ...]:
        """List what was and is billed, oldest first, as it is now.

        Args:
            known_machines: ids that a state knows; the lists may not show them yet.
        """
        with self.reading("the bill"):
            return tuple(self.backend.charges(owner, {*known_machines, *self._journalled(owner)}))

    def charges_listed(self, owner: Owner) -> tuple[Charge, ...]:
        """List the same from the account's lists alone."""
        with self.reading("the bill"):
            return tuple(self.listed_charges(owner))

    def everything(self) -> tuple[Belonging, ...]:
        """List what bears any mark of microcluster."""
        with self.reading("what bears a mark"):
            return tuple(self.backend.everything())

    def to_come(self, owner: Owner, found: Iterable[Belonging], time_scale: float) -> list[str]:
        """Say what is not billed yet and may be, or will be: nothing may be called the end before it is.

        Args:
            found: what bears the mark.
        """
        machine = self.backend.machine_label
        waiting = [each for each in found if each.is_alive and not each.is_billed and each.kind == machine]
        with self.reading("the orders"):
            unshown = self._unshown(owner, time_scale)
        return [f"{each} is ordered and not billed yet: the order waits" for each in waiting] + unshown

    def cancel_all(self, owner: Owner, time_scale: float, tell: Callable[[str], None]) -> Receipt:
        """Cancel and remove whatever bears the mark, wait for what may still turn up, and return the receipt."""
        stop = threading.Event()
        urn = f"urn:pulumi:{owner.stack}::microcluster::pulumi:pulumi:Stack::{owner.stack}"
        session = Session(lambda: self.backend, time_scale, stop)
        op = Operation(urn, session, Deadline(CANCEL_LIMIT_S, stop, time_scale), _Screen(tell))
        with self.reading("what is left"):
            return sweep.clean(op, op.backend(), owner)

    def remove(self, chosen: Iterable[Belonging], tell: Callable[[str], None]) -> list[str]:
        """Cancel or remove what is chosen, each with its proof; return the sentences of those that failed."""
        return sweep.remove_all(self.backend, chosen, Deadline(CANCEL_LIMIT_S, threading.Event()), tell)

    def _journalled(self, owner: Owner) -> set[str]:
        """Return the ids of the machines that the journal knows to be ordered and not closed."""
        journal = Journal(owner.stack, owner.mark)
        return set(journal.accepted(self.identity().account_id, self.backend.machine))

    def _unshown(self, owner: Owner, time_scale: float) -> list[str]:
        said = []
        backend, journal = self.backend, Journal(owner.stack, owner.mark)
        for each in journal.unresolved(self.identity().account_id):
            order = reconcile.standing(backend, owner, each)
            if order is not None:
                said.append(f"{each.name}: {order.described}, and the account shows nothing of it yet")
            elif reconcile.unsettled_s([each], reconcile.settled_s(backend), time_scale) > 0:
                said.append(
                    f"the answer to the order of {each.name} at {each.at[:19]} UTC got lost; it may still turn up"
                )
        waiting = backend.waiting_order(owner)
        said += [f"{waiting.described}, and the account shows no {backend.machine_label} of it"] if waiting else []
        hidden = self.hidden()
        return said + ([hidden] if hidden else [])


class _Screen:
    """Says on the screen what the engine would show."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.info = self.progress = self.warn = tell
