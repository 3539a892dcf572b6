"""The end of a stack: whatever still bears its mark is cancelled, and the account shows that nothing is billed."""

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from microcluster.accounts.shared import order
from microcluster.accounts.shared.account import Account, Market, Pending, Resource
from microcluster.accounts.shared.api_calls import at_once
from microcluster.accounts.shared.closing import close
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.journal import Intent, Journal
from microcluster.accounts.shared.order import Log, Operation
from microcluster.accounts.shared.receipt import Receipt, receipt
from microcluster.core import stack_keys
from microcluster.core.home import UNOWNED, KeysError, Owner

LIMIT_S = 90 * 60.0
"""Time limit of one command for everything that it ends."""


def clean(op: Operation, market: Market, owner: Owner) -> Receipt:
    """Cancel what no state knows, wait until nothing more can turn up, renew the stack's keys, and return the receipt.

    Raises:
        ProviderError: something is still billed, or cannot be removed; the text has every failure.
    """
    cleaning = _Cleaning(op, market, owner)
    found = op.wait_until(f"nothing with mark {owner.mark} is billed", cleaning.look)
    try:
        stack_keys.follow(owner, op.stack)
        if stack_keys.renew(owner):
            op.log.info(f"Stack {op.stack} has its new ssh key now; the old one is removed.")
    except (OSError, KeysError) as error:  # What is proven stays proven.
        op.log.warn(f"The keys of stack {op.stack} are not renewed: {error}. Run: fab rotate --stack {op.stack}")
    return found


def end_all(op: Operation, account: Account, resources: Iterable[Resource]) -> list[str]:
    """Cancel or remove all, each with its proof, and write down what is gone; return the failures: one does not keep the rest."""

    def end(each: Resource) -> str | None:
        failure = _failure(op, account, each)
        if failure is None:
            _journal_of(account, each).closed(each.kind, each.id)
        return failure

    # Machines first: they hold on to everything else.
    chosen = sorted(resources, key=lambda each: each.kind != account.machine)
    failures: list[str | None] = []
    for each in chosen:
        _journal_of(account, each).found(each.kind, each.called, each.id)
    for _, batch in groupby(chosen, key=lambda each: each.kind == account.machine):
        failures += at_once(end, list(batch))
    return [each for each in failures if each is not None]


def of_other_stacks(found: Iterable[Resource], owner: Owner) -> list[str]:
    """Name resources of other stacks with the same mark: a copied folder of keys causes them."""
    return [
        f"{each} bears mark {owner.mark} too and is of stack {each.owner.stack}: a copied folder of keys. It is left alone; "
        "give one of the stacks keys of its own"
        for each in found
        if each.owner.mark == owner.mark and each.owner != owner
    ]


def mark_failed(market: Market, journal: Journal, intent: Intent) -> None:
    """Write that an order made nothing, as nothing of it can turn up any more.

    Raises:
        ProviderError: the account shows that it was accepted, and no end of what it made.
    """
    trace = order.evidence(market, journal.owner, intent.hostname, [intent])
    if trace is not None:
        raise ProviderError(order.standing(f"{intent.kind} {intent.name}", trace))
    journal.refused(intent.attempt, order.NOT_ARRIVED)


def _journal_of(account: Account, resource: Resource) -> Journal:
    return account.journal(resource.owner or Owner("unknown", UNOWNED))  # One that was renamed bears nothing.


def _failure(op: Operation, account: Account, resource: Resource) -> str | None:
    if resource.cancel_by_hand:
        return (
            f"cancelling {resource}: microcluster orders no such thing and cancels none. If it is yours, cancel it with "
            f"'{resource.cancel_by_hand}' and run the command again; if not, take the mark {resource.owner.mark} off it."
        )
    if resource.is_kept:
        return f"removing {resource}: it is to stay when its stack goes. Put 'kept-' off its name in the console first."
    log = Log(op.log.info, lambda message: op.log.progress(f"{resource}: {message}"), op.log.warn)
    try:
        close(replace(op, log=log), account, resource)
    except ProviderError as error:
        return str(error)
    return None


class _Cleaning:
    """Sweeps and looks until the account is clean and every order that was sent is known to have made nothing more."""

    def __init__(self, op: Operation, market: Market, owner: Owner) -> None:
        self._op, self._market, self._owner = op, market, owner
        self._journal = op.journal(owner)
        self._swept_at = time.monotonic()
        self._warned: set[str] = set()

    def look(self) -> Receipt | Pending:
        uncertain = self._sweep()
        unresolved = self._journal.unresolved()
        if order.unsettled_s(unresolved, self._market.settled_s, self._op.session.time_scale) > 0:
            uncertain.append(f"the answer to the order of {unresolved[-1].name} got lost, and it may still turn up")
        if uncertain:
            return Pending(uncertain[0])
        for each in unresolved:
            trace = order.evidence(self._market, self._owner, each.hostname, [each])
            if trace is not None and not self._is_settled():
                return Pending(f"{trace.described}, and the account does not show that what was ordered is over")
            mark_failed(self._market, self._journal, each)
        return self._proof()

    def _sweep(self) -> list[str]:
        """Cancel and remove, and return what cannot be known yet."""
        machines, machine_kind = self._seen(), self._market.machine
        living = [each for each in machines if isinstance(each, Resource) and each.is_alive]
        if living:
            names = ", ".join(each.id for each in living)
            self._op.log.warn(f"Cancels {machine_kind}s that no state file knows: {names}.")
        fresh = [
            Resource(kind, each, intent.name, self._owner)
            for kind in self._journal.kinds()
            for each, intent in self._fresh(kind).items()
            if kind != machine_kind
        ]
        failures = self._end([*living, *fresh])
        all_resources = self._market.resources()
        for sentence in of_other_stacks(all_resources, self._owner):
            self._warn(f"{sentence}.")
        own_resources = [each for each in all_resources if each.owner == self._owner and not each.is_kept]
        other_resources = [each for each in own_resources if each.kind != machine_kind]
        # The key holds the rental's terms: whatever may still be billed needs them.
        if other_resources and not failures:
            self._market.check_sees_all("removing the stack's keys")
            failures = self._end(other_resources)
        if failures:
            raise ProviderError("\n".join(failures))
        if living or other_resources:
            self._swept_at = time.monotonic()
        for kind in self._journal.kinds():
            self._close_gone(kind)
        return [each.detail for each in machines if isinstance(each, Pending)]

    def _end(self, resources: Iterable[Resource]) -> list[str]:
        return end_all(self._op, self._market, resources)

    def _close_gone(self, kind: str) -> None:
        """Write down what went without us, or with something else: a receipt has to name it."""
        fresh = self._fresh(kind) if kind == self._market.machine else {}
        for each in self._journal.accepted(kind):
            if self._market.find(kind, each, self._owner, fresh=each in fresh) is None:
                self._journal.closed(kind, each)

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warned:
            self._op.log.warn(sentence)
        self._warned.add(sentence)

    def _seen(self) -> list[Resource | Pending]:
        """Read machines that may be alive: from the list, which may lag, and from the journal, which may be lost."""
        machine = self._market.machine
        listed = [each.id for each in self._market.resources(self._owner, machine) if each.is_alive]
        accepted = self._journal.accepted(machine)
        settled = set(accepted) - set(self._fresh(machine))
        machines: list[Resource | Pending] = []
        for each in sorted({*listed, *accepted}):
            # What the journal does not know, another computer may have ordered only now.
            found = self._market.find(machine, each, self._owner, fresh=each not in settled)
            if found is None and each in settled:
                self._journal.closed(machine, each)
            elif isinstance(found, Resource) and each in settled and found.owner != self._owner:
                self._warn(f"{found.described} was ordered for this stack and renamed. It is left alone.")
            elif found is not None:
                machines.append(found)
        return machines

    def _fresh(self, kind: str) -> dict[str, Intent]:
        return order.within_lag(self._op, self._market, self._journal.accepted(kind))

    def _proof(self) -> Receipt | Pending:
        machine = self._market.machine
        found = receipt(self._market.charges(self._owner, self._fresh(machine)))
        # A receipt without them would be clean, and untrue about the money.
        unlisted = self._without_charge(found)
        if unlisted:
            return Pending(f"the account's list of charges does not show {machine} {', '.join(unlisted)} yet")
        still_open = [f"{row.id} ({row.host}, {row.rate})" for row in found.rows if row.is_open and not row.is_kept]
        if not still_open:
            self._market.check_sees_all("proving that nothing is billed any more")
            return found
        if self._is_settled():
            raise ProviderError(
                f"proving that nothing is billed any more: billing item {', '.join(still_open)} of mark {self._owner.mark} is "
                "open, and nothing that could be cancelled is behind it. Run 'fab receipt', and ask the vendor to close it."
            )
        return Pending(f"still billed: {', '.join(still_open)}")

    def _is_settled(self) -> bool:
        """Tell whether the lists must show the last cancellation by now: they show one as late as an order."""
        passed_s = (time.monotonic() - self._swept_at) / self._op.session.time_scale
        return passed_s > self._market.settled_s

    def _without_charge(self, found: Receipt) -> list[str]:
        """Return new orders under a name that has fewer charges than orders."""
        charged = Counter(row.host for row in found.rows if not row.is_part)
        made = self._journal.made(self._market.machine)
        ordered = Counter(str(intent.hostname) for intent in made.values())
        recent = order.within_lag(self._op, self._market, made)
        return sorted(
            each for each, intent in recent.items() if charged[str(intent.hostname)] < ordered[str(intent.hostname)]
        )
