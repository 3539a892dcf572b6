"""Paperspace's sweep: the provider's own resources over its emulated account, killed at every call, with faults, lags and TLS."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from core.home import Home, owner_mark
from providers.paperspace.__main__ import PAPERSPACE
from providers.rental.errors import PartialFailure, ProviderError
from providers.rental.operation import Operation
from providers.rental.waiting import Deadline
from tools.chaos.account import CLOCK_RATE
from tools.chaos.checker import Expected, Verdict, judge, wrong_receipts
from tools.chaos.clocks import disturb
from tools.chaos.engine import Verb
from tools.chaos.market import Killed
from tools.chaos.paperspace_account import Fate, Team, opened
from tools.chaos.program import STACK
from tools.chaos.second import Log
from tools.chaos.stage import Theatre

HOSTS = ("gpu-0", "gpu-1")
CALLS = {Verb.UP: 55, Verb.DESTROY: 50}
"""About as many as a clean command makes; a strike at a later call than the last kills nobody."""
LAG_S, LIMIT_S, SHARE, TLS_EVERY = 60.0, 3000.0, 0.15, 4
FAULTS = ("error", "lost_call", "lost_reply", "malformed", "stale", "reordered", "capacity")
WRITES = ("POST", "PUT", "PATCH", "DELETE")
PLACE = {"region": "ny2", "machineType": "P4000x2", "templateId": "twnlo3zj", "diskGb": 50, "publicIpType": "static"}


@dataclass
class Resource:
    """What the state holds of one resource."""

    kind: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    is_unfinished: bool = False


@dataclass
class Stack:
    """One stack's state, as Pulumi keeps it, and its account."""

    team: Team
    public_key: str
    state: dict[str, Resource] = field(default_factory=dict)
    log: Log = field(default_factory=Log)
    fate: Fate = field(default_factory=Fate)

    @property
    def mark(self) -> str:
        """The owner mark."""
        return owner_mark(self.public_key)

    def run(self, verb: Verb, fate: Fate, *, refresh: bool = False) -> str:
        """Run one command in a process of its own; return why it failed, or nothing."""
        self.fate = fate
        session = self.team.session(fate)
        try:
            if refresh:
                self._refresh(session)
            (self._up if verb is Verb.UP else self._destroy)(session)
        except ProviderError as error:
            return str(error)
        except Killed:
            return "killed"
        return ""

    def _refresh(self, session: Any) -> None:
        for name, known in list(self.state.items()):
            resource, op = self._resource(known.kind), self._operation(session, name, known.kind)
            try:
                live = resource.read(op, known.id, known.inputs, known.outputs)
            except PartialFailure:
                known.is_unfinished = True
                continue
            if live is None:
                del self.state[name]

    def _up(self, session: Any) -> None:
        mark = {"mark": self.mark}
        self._make(session, "ledger", "Ledger", {**mark, **PLACE, "stack": STACK, "nodes": len(HOSTS), "driveGb": 250})
        self._make(session, "net", "PrivateNetwork", {**mark, "name": "net", "region": "ny2"})
        inside = {**mark, "region": "ny2", "networkId": self.state["net"].id}
        self._make(session, "data", "SharedDrive", {**inside, "name": "data", "sizeGb": 250})
        for host in HOSTS:
            machine = {**PLACE, **inside, "hostname": host, "publicKey": self.public_key, "startupScript": "true"}
            self._make(session, host, "Machine", machine)

    def _make(self, session: Any, name: str, kind: str, inputs: dict[str, Any]) -> None:
        resource, op, known = self._resource(kind), self._operation(session, name, kind), self.state.get(name)
        try:
            if known is None:
                made = resource.create(op, inputs)
                self.state[name] = Resource(kind, made.resource_id, inputs, made.outputs)
            elif known.is_unfinished:
                outputs = resource.update(op, known.id, inputs, known.outputs)
                self.state[name] = Resource(kind, known.id, inputs, outputs)
        except PartialFailure as failed:
            self.state[name] = Resource(kind, failed.resource_id, inputs, failed.outputs, is_unfinished=True)
            raise

    def _destroy(self, session: Any) -> None:
        for name in [each for each in (*HOSTS, "data", "net", "ledger") if each in self.state]:
            known = self.state[name]
            op = self._operation(session, name, known.kind)
            self._resource(known.kind).delete(op, known.id, known.inputs, known.outputs)
            del self.state[name]

    @staticmethod
    def _resource(kind: str) -> Any:
        return PAPERSPACE.resources[f"paperspace:index:{kind}"]

    def _operation(self, session: Any, name: str, kind: str) -> Operation:
        urn = f"urn:pulumi:{STACK}::microcluster::paperspace:index:{kind}::{name}"
        return Operation(urn, session, Deadline(LIMIT_S, session.stop, 1 / CLOCK_RATE), self.log)


@dataclass(frozen=True)
class Case:
    """One run: commands with a strike or while faults are injected, then one that has to reach its goal."""

    verb: Verb
    number: int
    is_accepted: bool
    then: Verb
    seed: int
    is_faulty: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """Half the accounts' lists lag, a quarter is over TLS, which breaks now and then."""
        chance, is_tls = Random(self.seed), self.seed % TLS_EVERY == 0
        kinds = (*FAULTS, "broken_tls") if is_tls else FAULTS
        rates = (
            {kind: SHARE / len(kinds) for kind in kinds} if self.is_faulty else {"broken_tls": 0.03} if is_tls else {}
        )
        return {
            "list_lag_s": max(chance.uniform(-LAG_S, LAG_S), 0.0),
            "tls": is_tls,
            "seed": self.seed,
            "faults": rates,
        }

    def play(self, theatre: Theatre) -> Verdict:
        """Strike, disturb the clocks, run the next command, and judge; after an ``up`` a second one must find nothing to do."""
        verdict = Verdict()
        with tempfile.TemporaryDirectory(prefix="microcluster-chaos-") as folder:
            os.environ["MICROCLUSTER_HOME"] = f"{folder}/home"  # A worker process plays one case after the other.
            public_key = _make_keys()
            with opened(Path(folder) / "account", STACK, **self.settings) as team:
                _Play(self, Stack(team, public_key), verdict).run()
        return verdict

    def __str__(self) -> str:
        what = "while faults are injected" if self.is_faulty else f"killed at call {self.number}"
        when = "" if self.is_faulty else f", {'after' if self.is_accepted else 'before'} it was carried out"
        return f"paperspace: {self.verb} {what}{when}; then {self.then}; seed {self.seed}"


@dataclass
class _Play:
    case: Case
    stack: Stack
    verdict: Verdict

    def run(self) -> None:
        case = self.case
        if case.verb is Verb.DESTROY and case.is_faulty:
            self.stack.run(Verb.UP, Fate())  # Faults may end it too: then the destroy meets a part of a cluster.
        elif case.verb is Verb.DESTROY:
            self._succeeds(Verb.UP)
        if case.is_faulty:
            failure = self.stack.run(case.verb, Fate())
            if not failure:
                self._judge(case.verb, None)
            self.stack.team.stop_faults()
        else:
            self.stack.run(case.verb, Fate(case.number, case.is_accepted))
            disturb(Home.of().root / "journal", Random(case.seed))
        self._succeeds(case.then, refresh=case.then is Verb.UP)
        orders = 1 if case.verb is Verb.UP else None
        if case.then is Verb.UP:
            self._succeeds(Verb.UP)
            writes = [each for each in self.stack.fate.calls if each.split()[0] in WRITES]
            self.verdict.prompts += [f"a second up made the calls {writes}"] if writes else []
            self._judge(Verb.UP, orders)
            self._succeeds(Verb.DESTROY)
        elif "ledger" not in self.stack.state and self.stack.team.history(self.stack.mark):
            self._sweep()
        self._judge(Verb.DESTROY, orders)

    def _sweep(self) -> None:
        """Down without a state, as a person does it: a ledger alone is made anew, and its end cleans up."""
        known = Resource("Ledger", "any", {"mark": self.stack.mark, **PLACE, "stack": STACK, "nodes": 2}, {})
        self.stack.state["ledger"] = known
        self._succeeds(Verb.DESTROY)

    def _succeeds(self, verb: Verb, *, refresh: bool = False) -> None:
        self.stack.log.lines.clear()
        failure = self.stack.run(verb, Fate(), refresh=refresh)
        self.verdict.prompts += [f"{verb} failed: {failure}"] if failure else []
        history, said = self.stack.team.history(self.stack.mark), self.stack.log.lines
        # The account's clock runs a hundred times faster than ours, by which the journal dates drives and networks: cents beside
        # a machine, whose dates come from the account.
        if any(each["what"] == "billing_item" and f"{STACK}-{self.stack.mark}." in each["domain"] for each in history):
            self.verdict.wrong_dollars += wrong_receipts(history, self.stack.mark, said)

    def _judge(self, verb: Verb, orders: int | None) -> None:
        mark = self.stack.mark
        names = {f"{host}.{STACK}-{mark}.microcluster" for host in HOSTS} if verb is Verb.UP else set()
        self.verdict.add(judge(self.stack.team.history(mark), Expected(mark, frozenset(names), orders)))


def cases(seed: int, faulty: int = 60) -> Iterator[Case]:
    """List each call of each command, struck at both moments, with a command drawn to follow; then those with faults."""
    every = [
        (verb, number, accepted)
        for verb, calls in CALLS.items()
        for number, accepted in product(range(1, calls + 1), (False, True))
    ]
    for place, (verb, number, accepted) in enumerate(every):
        then = Random(f"{seed}-{verb}-{number}-{accepted}").choice(list(Verb))
        yield Case(verb, number, accepted, then, seed * 1000 + place)
    for place in range(faulty):
        verb, then = (list(Verb)[place // 2 % 2], list(Verb)[place % 2])
        yield Case(verb, 0, False, then, seed * 1000 + 500 + place, is_faulty=True)


def _make_keys() -> str:
    folder = Home.of().keys / STACK
    folder.mkdir(parents=True)
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    (folder / "id_ed25519").write_bytes(private)
    return key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
