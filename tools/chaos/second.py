"""The second account's sweep: the kernel's own up and destroy, killed at every call, with lagging lists and lost answers."""

import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from random import Random

from providers.rental import machine, reconcile, sweep
from providers.rental.backend import OrderRequest, Thing
from providers.rental.errors import ProviderError
from providers.rental.idempotent_order import adopt_or_order
from providers.rental.operation import Operation, Session
from providers.rental.owner_mark import Owner
from providers.rental.readiness import Readiness
from providers.rental.receipt import as_lines
from providers.rental.waiting import Deadline, Pending, wait_until
from tools.chaos.checker import Expected, Verdict, judge, wrong_receipts
from tools.chaos.engine import Verb
from tools.chaos.market import BADGE, MACHINE, Killed, Market
from tools.chaos.program import DOMAIN, MARK, STACK
from tools.chaos.second_account import Second
from tools.chaos.stage import Theatre

SCALE = 0.002
HOSTS = ("gpu-0", "gpu-1")
NAMES = frozenset(f"{host}.{DOMAIN}" for host in HOSTS)
OWNER, OTHERS = Owner(STACK, MARK), (Owner("other", "1" * 8), Owner(STACK, "0" * 8))
LIMIT_S, LAG_S, SHARE = 3000.0, 60.0, 0.25
CALLS = {Verb.UP: 16, Verb.DESTROY: 14}
"""About as many as a clean command makes; a strike at a later call than the last kills nobody."""
FAULTY_COMMANDS = 3


@dataclass
class Log:
    """What the commands said."""

    lines: list[str] = field(default_factory=list)

    def info(self, message: str) -> None:
        self.lines.append(message)

    progress = warn = info


@dataclass
class Stack:
    """One stack's state, as Pulumi keeps it, and its account."""

    market: Market
    state: dict[str, str] = field(default_factory=dict)
    log: Log = field(default_factory=Log)

    def run(self, verb: Verb, *, refresh: bool = False) -> str:
        """Run one command in a process of its own; return why it failed, or nothing."""
        self.market.calls.clear()
        backend, stop = Second(self.market), threading.Event()
        session = Session(lambda: backend, SCALE, stop)
        try:
            if refresh:
                self._refresh(session, backend, stop)
            (self._up if verb is Verb.UP else self._destroy)(session, backend, stop)
        except ProviderError as error:
            return str(error)
        except Killed:
            return "killed"
        return ""

    def _refresh(self, session: Session, backend: Second, stop: threading.Event) -> None:
        for name, object_id in list(self.state.items()):
            op = self._operation(session, stop, name)
            if name in HOSTS:
                found = machine.read(op, backend, OWNER, object_id, inputs={}, old={})
            else:
                (found,) = wait_until(name, partial(_badge, op, backend, object_id), op.deadline)
            if found is None:
                del self.state[name]

    def _up(self, session: Session, backend: Second, stop: threading.Event) -> None:
        op = self._operation(session, stop, "key")
        journal = op.journal(MARK).identity()
        self._create(op, backend, OrderRequest(BADGE, OWNER, "badge key", "key", journal))
        for host in HOSTS:
            op, keys = self._operation(session, stop, host), [self.state["key"]]
            self._create(op, backend, OrderRequest(MACHINE, OWNER, host, host, None, hostname=host, key_ids=keys))
            building = Readiness(op, backend, OWNER, self.state[host], host)
            with machine.recorded(op, building, {}):
                building.wait()

    def _create(self, op: Operation, backend: Second, request: OrderRequest) -> None:
        if request.name not in self.state:
            made = adopt_or_order(op, backend, request)
            self.state[request.name] = made.id if isinstance(made, Thing) else made

    def _destroy(self, session: Session, backend: Second, stop: threading.Event) -> None:
        for name in [each for each in (*HOSTS, "key") if each in self.state]:
            op = self._operation(session, stop, name)
            if name in HOSTS:
                machine.delete(op, backend, OWNER, self.state[name])
            else:
                backend.remove(BADGE, self.state[name], OWNER, op.deadline, op.log.progress)
                op.journal(MARK).closed(backend.identity().account_id, BADGE, self.state[name])
            del self.state[name]
        op = self._operation(session, stop, "ledger")
        op.log.info(as_lines(sweep.clean(op, backend, OWNER), MARK))

    def _operation(self, session: Session, stop: threading.Event, name: str) -> Operation:
        return Operation(f"urn:pulumi:{STACK}::x::y::{name}", session, Deadline(LIMIT_S, stop, SCALE), self.log)


def _badge(op: Operation, backend: Second, badge_id: str) -> tuple[Thing | None] | Pending:
    fresh = badge_id in reconcile.fresh(op, backend, MARK, BADGE)
    found = backend.find(BADGE, badge_id, OWNER, fresh=fresh)
    return found if isinstance(found, Pending) else (found,)


@dataclass(frozen=True)
class Case:
    """One run: commands with a strike or while faults are injected, then one that has to reach its goal."""

    verb: Verb
    number: int
    is_accepted: bool
    then: Verb
    seed: int
    is_faulty: bool = False

    def play(self, theatre: Theatre) -> Verdict:
        """Strike, run the next command, and judge; after an ``up`` a second one must find nothing to do."""
        chance, verdict = Random(self.seed), Verdict()
        lag_s = max(chance.uniform(-LAG_S, LAG_S), 0.0)
        with tempfile.TemporaryDirectory(prefix="microcluster-chaos-") as home:
            os.environ["MICROCLUSTER_HOME"] = home  # A worker process plays one case after the other.
            market = Market(SCALE, lag_s, chance=Random(self.seed))
            for number, owner in enumerate(OTHERS):
                market.put(Thing(MACHINE, str(1 + number), HOSTS[0], owner, "another's"))
            _Play(self, Stack(market), verdict).run()
        return verdict

    def __str__(self) -> str:
        what = "while faults are injected" if self.is_faulty else f"killed at call {self.number}"
        when = "" if self.is_faulty else f", {'after' if self.is_accepted else 'before'} it was carried out"
        return f"second account: {self.verb} {what}{when}; then {self.then}; seed {self.seed}"


@dataclass
class _Play:
    case: Case
    stack: Stack
    verdict: Verdict

    def run(self) -> None:
        case, market = self.case, self.stack.market
        if case.verb is Verb.DESTROY:
            self._succeeds(Verb.UP)
        if case.is_faulty:
            market.share = SHARE
            for _ in range(FAULTY_COMMANDS):
                self._is_truthful(case.verb, self.stack.run(case.verb))
            market.share = 0.0
        else:
            market.strike = (case.number, case.is_accepted)
            self.stack.run(case.verb)
            market.strike = None
        self._succeeds(case.then, refresh=case.verb is Verb.DESTROY)
        orders = 1 if case.verb is Verb.UP else None
        if case.then is Verb.UP:
            self._succeeds(Verb.UP)
            writes = [each for each in market.calls if each in ("order", "cancel", "remove", "write_claim")]
            self.verdict.prompts += [f"a second up made the calls {writes}"] if writes else []
            self._judge(NAMES, orders)
            self._succeeds(Verb.DESTROY)
        self._judge(frozenset(), orders)

    def _succeeds(self, verb: Verb, *, refresh: bool = False) -> None:
        self.stack.log.lines.clear()
        failure = self.stack.run(verb, refresh=refresh)
        self.verdict.prompts += [f"{verb} failed: {failure}"] if failure else []
        said = self.stack.log.lines
        self.verdict.wrong_dollars += wrong_receipts(self.stack.market.history, MARK, said)

    def _is_truthful(self, verb: Verb, failure: str) -> None:
        if not failure:
            self._judge(NAMES if verb is Verb.UP else frozenset(), None)

    def _judge(self, names: frozenset[str], orders: int | None) -> None:
        self.verdict.add(judge(self.stack.market.history, Expected(MARK, names, orders)))


def cases(seed: int, faulty: int = 200) -> Iterator[Case]:
    """List every case: each call of each command, struck at both moments, then either command; then those with faults."""
    every = [
        (verb, number, accepted, then)
        for verb, calls in CALLS.items()
        for number, accepted, then in product(range(1, calls + 1), (False, True), Verb)
    ]
    for place, (verb, number, accepted, then) in enumerate(every):
        yield Case(verb, number, accepted, then, seed * 1000 + place)
    for place in range(faulty):
        verb, then = (list(Verb)[place // 2 % 2], list(Verb)[place % 2])
        yield Case(verb, 0, False, then, seed * 1000 + 500 + place, is_faulty=True)
