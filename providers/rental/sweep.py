"""The end of a stack: whatever still bears its mark is cancelled, and the account shows that nothing is billed."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from providers.rental import closing, reconcile
from providers.rental.backend import Backend, Belonging, Tell, Thing
from providers.rental.errors import ProviderError
from providers.rental.journal import Intent
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import Receipt, receipt
from providers.rental.waiting import Deadline, Pending, wait_until

WORKERS = 16


def clean(op: Operation, backend: Backend, owner: Owner) -> Receipt:
    """Cancel what no state knows, wait until nothing more can turn up, and return the receipt.

    Raises:
        ProviderError: something is still billed, or cannot be removed; the text has every failure.
    """
    cleaning = _Cleaning(op, backend, owner)
    return wait_until(f"nothing with mark {owner.mark} is billed", cleaning.look, op.deadline, op.log.progress)


def remove_all(backend: Backend, things: Iterable[Belonging], deadline: Deadline, tell: Tell) -> list[str]:
    """Cancel or remove all, each with its proof; return the sentences of those that failed: one does not keep the rest."""
    return [failure for _, failure in _removed(backend, things, deadline, tell) if failure]


def of_other_stacks(found: Iterable[Belonging], owner: Owner) -> list[str]:
    """Say what carries the same mark for another stack: a copied folder of keys does that."""
    return [
        f"{each} bears mark {owner.mark} too and is of stack {each.owner.stack}: a copied folder of keys. It is left alone; "
        "give one of the stacks keys of its own"
        for each in found
        if each.owner.mark == owner.mark and not owner.has(each.owner)
    ]


def _removed(
    backend: Backend, things: Iterable[Belonging], deadline: Deadline, tell: Tell
) -> list[tuple[Belonging, str | None]]:
    things = tuple(things)
    machines = [each for each in things if each.kind == backend.machine_label]  # They hold on to everything else.
    done: list[tuple[Belonging, str | None]] = []
    for batch in (machines, [each for each in things if each not in machines]):
        with ThreadPoolExecutor(WORKERS) as pool:
            tried = pool.map(lambda each: _failure(backend, each, deadline, tell), batch)
            done += zip(batch, tried, strict=True)
    return done


def _failure(backend: Backend, thing: Belonging, deadline: Deadline, tell: Tell) -> str | None:
    if thing.cancel_by_hand:
        return (
            f"cancelling {thing}: microcluster orders no such thing and cancels none. If it is yours, cancel it with "
            f"'{thing.cancel_by_hand}' and run the command again; if not, take the mark {thing.owner.mark} off it."
        )
    if thing.is_kept:
        return f"removing {thing}: it is to stay when its stack goes. Put 'kept-' off its name in the console first."
    try:
        if thing.kind == backend.machine_label:
            closing.close(backend, thing.id, thing.owner, deadline, lambda message: tell(f"{thing}: {message}"))
        else:
            backend.remove(thing.kind, thing.id, thing.owner, deadline, lambda message: tell(f"{thing}: {message}"))
    except ProviderError as error:
        return str(error)
    return None


class _Cleaning:
    """Sweeps and looks until the account is clean and every order that was sent is known to have made nothing more."""

    def __init__(self, op: Operation, backend: Backend, owner: Owner) -> None:
        self._op, self._backend, self._owner = op, backend, owner
        self._journal, self._account_id = op.journal(owner.mark), backend.identity().account_id
        self._swept_at = time.monotonic()
        self._warned: set[str] = set()

    def look(self) -> Receipt | Pending:
        uncertain = self._sweep()
        unresolved = self._journal.unresolved(self._account_id)
        settle_s, scale = reconcile.settled_s(self._backend), self._op.deadline.time_scale
        if reconcile.unsettled_s(unresolved, settle_s, scale) > 0:
            uncertain.append(f"the answer to the order of {unresolved[-1].name} got lost, and it may still turn up")
        if uncertain:
            return Pending(uncertain[0])
        for each in unresolved:
            trace = reconcile.evidence(self._backend, self._owner, each.hostname, [each])
            if trace is not None and not self._is_settled():
                return Pending(f"{trace}, and the account does not show that what was ordered is over")
            reconcile.mark_failed(self._backend, self._journal, each)
        return self._proof()

    def _sweep(self) -> list[str]:
        """Cancel and remove, and return what cannot be known yet."""
        seen = self._seen()
        living = {each.id: each.name for each in seen if isinstance(each, Thing) and each.is_alive}
        if living:
            self._op.log.warn(f"Cancels {self._backend.machine_label}s that no state file knows: {', '.join(living)}.")
        failures = self._remove(self._backend.machine, self._backend.machine_label, living)
        for kind in self._backend.other_kinds:
            failures += self._remove(kind, kind, {each: intent.name for each, intent in self._fresh(kind).items()})
        found = self._backend.everything()
        for sentence in of_other_stacks(found, self._owner):
            self._warn(f"{sentence}.")
        rest = [each for each in found if self._owner.has(each.owner) and each.kind != self._backend.machine_label]
        rest = [each for each in rest if not each.is_kept]
        failures += remove_all(self._backend, rest, self._op.deadline, self._op.log.progress)
        if failures:
            raise ProviderError("\n".join(failures))
        if living or rest:
            self._swept_at = time.monotonic()
        return [each.detail for each in seen if isinstance(each, Pending)]

    def _remove(self, kind: str, label: str, names: Mapping[str, str]) -> list[str]:
        """Remove things by id and name, and write down what is gone."""
        things = [Belonging(label, each, name, self._owner) for each, name in names.items()]
        done = _removed(self._backend, things, self._op.deadline, self._op.log.progress)
        for thing, failure in done:
            if failure is None:
                self._journal.closed(self._account_id, kind, thing.id)
        return [failure for _, failure in done if failure]

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._op.log.warn(sentence)
        self._warned.add(sentence)

    def _seen(self) -> list[Thing | Pending]:
        """Read what may be alive: by the list, which may lag, and by the journal, which may be lost."""
        machine = self._backend.machine
        listed = [each.id for each in self._backend.list(machine, self._owner) if each.is_alive]
        accepted = self._journal.accepted(self._account_id, machine)
        settled = set(accepted) - set(self._fresh(machine))
        seen: list[Thing | Pending] = []
        for each in sorted({*listed, *accepted}):
            # What the journal does not know, another computer may have ordered only now.
            thing = self._backend.find(machine, each, self._owner, fresh=each not in settled)
            if thing is None and each in settled:
                self._journal.closed(self._account_id, machine, each)
            elif isinstance(thing, Thing) and each in settled and thing.owner != self._owner:
                self._warn(f"{thing.label} was ordered for this stack and renamed. It is left alone.")
            elif thing is not None:
                seen.append(thing)
        return seen

    def _fresh(self, kind: str) -> dict[str, Intent]:
        return reconcile.fresh(self._op, self._backend, self._owner.mark, kind)

    def _proof(self) -> Receipt | Pending:
        # A receipt without them would be clean, and untrue about the money.
        unlisted = self._without_charge()
        if unlisted:
            return Pending(
                f"the account's list of charges does not show {self._backend.machine_label} {', '.join(unlisted)} yet"
            )
        found = receipt(self._backend.charges(self._owner, self._fresh(self._backend.machine)))
        still_open = [f"{row.id} ({row.host}, {row.rate})" for row in found.rows if row.is_open and not row.is_kept]
        if not still_open:
            self._backend.check_to_prove()
            return found
        if self._is_settled():
            raise ProviderError(
                f"proving that nothing is billed any more: billing item {', '.join(still_open)} of mark {self._owner.mark} is "
                "open, and nothing that could be cancelled is behind it. Run 'fab receipt', and ask the vendor to close it."
            )
        return Pending(f"still billed: {', '.join(still_open)}")

    def _is_settled(self) -> bool:
        """Tell whether the lists must show the last cancellation by now: they show one as late as an order."""
        passed_s = (time.monotonic() - self._swept_at) / self._op.deadline.time_scale
        return passed_s > reconcile.settled_s(self._backend)

    def _without_charge(self) -> list[str]:
        """Return what was ordered only now under a name that the list of charges shows less often than it was ordered."""
        charged = Counter(self._backend.charged_names(self._owner))
        made = self._journal.made(self._account_id, self._backend.machine)
        ordered = Counter(str(intent.hostname) for intent in made.values())
        recent = reconcile.within_lag(self._op, self._backend, made)
        return sorted(
            each for each, intent in recent.items() if charged[str(intent.hostname)] < ordered[str(intent.hostname)]
        )
