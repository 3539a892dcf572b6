"""One case by a seed and a number: a rental, its limits, one or two computers, and what happens to them; and what must hold of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random

from microcluster.guard.records import log_of
from tests.chaos.accounts import AccountServer
from tests.guarded.computer import Computer, Look, Machines
from tests.guarded.misfortunes import ALL, BLOCKING, NAMELESS, Undo
from tests.guarded.rented import Account, opened

MINUTE_S, HOUR_S, WEEK_S = 60.0, 3600.0, 7 * 86400.0
OVER_S = 300.0
"""How much longer than its limits a rental may last."""
AT_ONCE_S, ANEW_S = 480.0, 1200.0
"""From when the account can be reached again, shortly or long after a limit: to stop, to fetch for what time is left, to cancel."""
RESERVE_S, SHARE, CLOCKS_S = 900.0, 5, 180.0
MOST_LOOKS, BLIND_LOOKS, CLOSE_S = 100, 2, 25 * MINUTE_S
HIDDEN_IDLE = ("an engine that hangs", "machines that do not answer")


@dataclass(frozen=True)
class Misfortune:
    """What happens to which computer, in shares of the time until the first limit; without an end it stays so."""

    kind: str
    computer: int
    at: float
    until: float | None


@dataclass(frozen=True)
class Case:
    """One case."""

    seed: int
    number: int
    nodes: int
    lease_h: Decimal
    budget_h: int | None
    """So many started hours of all machines."""
    idle_min: int | None
    idles_at: float | None
    fetch_s: float
    is_named: bool
    """Whether the account says when the rental began: a version of before did not."""
    second: str
    """What a second computer has: "", "mark": the account's key alone, "key": the key folder too, or "clone": the limits too."""
    happens: tuple[Misfortune, ...]
    again: str
    """How the person rents anew: "", "ordered", or "waiting"."""

    def __str__(self) -> str:
        what = "; ".join(
            f"{each.kind} at {each.computer} {each.at:.2f}-{each.until or math.inf:.2f}" for each in self.happens
        )
        return f"--seed {self.seed} --case {self.number}: {what}"


def case_of(seed: int, number: int) -> Case:
    """Draw a case."""
    chance = Random(f"{seed}-{number}")
    second = chance.choice(["", "", "", "mark", "key", "clone"])
    happens = []
    for kind in chance.sample(list(ALL), chance.choice([1, 1, 2, 3])):
        at = chance.choice([chance.uniform(0.05, 0.9), chance.uniform(0.9, 1.1)])
        ends = kind in BLOCKING or chance.random() < 0.3
        until = at + chance.choice([0.05, chance.uniform(0.05, 0.6), chance.uniform(0.6, 2)]) if ends else None
        where = chance.randrange(2) if second and kind not in NAMELESS else 0
        if kind not in NAMELESS or not any(each.kind in NAMELESS for each in happens):
            happens.append(Misfortune(kind, where, at, until))
    idle_min = chance.choice([None, None, 20, 40])
    return Case(
        *(seed, number, chance.randint(1, 3), Decimal(chance.randint(10, 60)) / 10),
        budget_h=chance.choice([None, None, chance.randint(3, 6)]),
        idle_min=idle_min,
        idles_at=chance.uniform(0.1, 0.7) if idle_min and chance.random() < 0.6 else None,
        fetch_s=chance.choice([30.0, 300.0, 900.0]),
        is_named=chance.random() < 0.8,
        second=second,
        happens=tuple(sorted(happens, key=lambda each: each.at)),
        again=chance.choice(["", "ordered", "waiting"]),
    )


@dataclass
class Played:
    """A case while it is played."""

    case: Case
    account: Account
    computers: list[Computer]
    machines: Machines
    due: float = math.inf
    """When the first limit of lease and budget is over."""
    flaws: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    undo: dict[Misfortune, Undo] = field(default_factory=dict)
    waiting: list[Misfortune] = field(default_factory=list)
    reached_since: float | None = None
    """Since when every look could reach the account."""
    idle_since: float | None = None
    """The same, for looks that could see that the machines are idle too."""

    woke_at: float = 0.0
    """When a computer woke up that had fallen asleep at its work."""

    def __post_init__(self) -> None:
        began = self.account.terms.first_order
        budget_end = self.account.budget_end()
        self.hard_end, self.due = budget_end, min(self.account.lease_end(), budget_end - HOUR_S)
        self.began, self.waiting = began, list(self.case.happens)
        share = (self.account.lease_end() - began) / SHARE
        self.begin = min(self.account.lease_end() - min(RESERVE_S, share), budget_end - HOUR_S - RESERVE_S)
        if self.case.idles_at is not None:
            self.machines.idle_since = self.moment(self.case.idles_at)
        for each in self.computers:
            each.meanwhile = partial(self.happen, each)

    def moment(self, share: float) -> float:
        return self.began + share * (self.due - self.began)

    def happen(self, at_work: Computer | None = None) -> None:
        """Let happen, and end, what is due; a computer that falls asleep at its work goes on with it afterwards."""
        for each in [one for one in self.waiting if self.moment(one.at) <= self.account.clock]:
            self.waiting.remove(each)
            self.undo[each] = ALL[each.kind](self.computers[each.computer])
            self._say(f"{each.kind} at {self.computers[each.computer].name}")
            if each.kind == "sleep" and at_work is self.computers[each.computer]:
                self.account.pass_(max(self.moment(each.until) - self.account.clock, 0) + 1)
                self.woke_at = self.account.clock
        for each in [one for one in self.undo if one.until and self.moment(one.until) <= self.account.clock]:
            self._say(f"no more: {each.kind}")
            self.undo.pop(each)()

    def play(self) -> None:
        """Look until it is over, a week later, and while the person rents again."""
        blind = 0
        for number in range(MOST_LOOKS):
            self.happen()
            self._tick(number)
            if not self.account.open:
                break
            blind = 0 if self.reached_since else blind + 1
            self.account.pass_(MINUTE_S if self._is_near() and blind < BLIND_LOOKS else self._pause_s())
        self._judge()
        bill = self.account.bill
        self.account.pass_(WEEK_S)
        if self.account.bill != bill and not self.account.open:
            self.flaws.append("billed afterwards")
        self._repair()
        for each in self.computers:
            self._look(each)
            self._check("receipt", each, each.receipt)
        if self.case.again and not self.account.open:
            self._rent_again()

    def _watched(self) -> list[float]:
        """Return from when on somebody looks every minute for a while."""
        ends = [self.begin - 2 * MINUTE_S]
        if self.machines.idle_since is not None:
            ends.append(self.machines.idle_since + (self.case.idle_min - 2) * MINUTE_S)
        return ends

    def _is_near(self) -> bool:
        return any(0 < self.account.clock - each < CLOSE_S for each in self._watched())

    def _pause_s(self) -> float:
        """Return how long nobody looks: until something happens or a limit is near, at most some while."""
        now = self.account.clock
        known = [self.moment(each.at) for each in self.waiting] + [
            self.moment(each.until) for each in self.undo if each.until
        ]
        moments = [each + 30 for each in known] + [each + 1 for each in self._watched()] + [now + 5000]
        return max(min(each for each in moments if each > now) - now, 1.0)

    def _tick(self, number: int) -> None:
        now = self.account.clock
        able, sees_idle = False, False
        for each in self.computers:
            before = each.can_reach
            self._look(each)
            if number % 8 == 2 and each.awake:
                self._check("receipt", each, each.receipt)
            able |= before and each.can_reach
            sees_idle |= before and each.can_reach and each.knows_idle and self.machines.reachable
        self.reached_since = max(self.reached_since or now, self.woke_at) if able else None
        self.idle_since = max(self.idle_since or now, self.woke_at) if sees_idle else None

    def _look(self, computer: Computer) -> None:
        if not computer.awake:
            return
        if computer.left:
            self._check("the timer of before", computer, partial(computer.look, computer.left))
        for name in computer.called:
            self._check(f"the timer of stack {name}", computer, partial(computer.look, stack=name))
        before = computer.has_timer
        self._check("guard", computer, computer.look)
        if before and not computer.has_timer and self.account.guests():
            self.flaws.append("the timer was removed while something is rented")

    def _check(self, command: str, computer: Computer, run: Callable[[], Look]) -> None:
        could_see = computer.can_see
        look = run()
        why = look.facts["verdict"]["why"] if look.facts else look.said.strip()[-500:]
        self._say(f"{command} at {computer.name}: {look.code} {why}")
        if "mistake in the program" in look.said:
            self.flaws.append(f"{command}: {look.said[-700:]}")
        self.flaws += self.account.touched()
        if look.code != 0:
            return
        if not (could_see or computer.can_see):
            self.flaws.append(f"{command}: exit code 0, and the account was not seen whole")
        if command in ("receipt", "down") and self.account.guests():
            self.flaws.append(f"{command}: exit code 0, and something is rented")
        if self.account.open and self.account.clock > self.due + OVER_S:
            self.flaws.append(f"{command}: exit code 0 after the limits")

    def _judge(self) -> None:
        account = self.account
        if account.open:
            self.flaws.append("it never ended")
            return
        end = account.last_end
        idle_end = math.inf
        if self.machines.idle_since is not None:
            idle_end = self.machines.idle_since + self.case.idle_min * MINUTE_S
        if end < min(self.begin - CLOCKS_S, idle_end):
            self.flaws.append(f"ended {(self.begin - end) / 60:.0f} min before its end had to begin")
        since = max(self.reached_since or account.clock, self.begin)
        allowed = max(self.due + OVER_S, since + (AT_ONCE_S if since < self.due + OVER_S else ANEW_S))
        if account.lease_end() <= self.due and end > allowed:
            self.flaws.append(
                f"lasted {(end - self.due) / 60:.0f} min over its lease, reached since {(since - self.due) / 60:.0f} min"
            )
        if account.bill > (account.terms.budget_cents or math.inf) / 100 and end > since + ANEW_S:
            self.flaws.append(f"cost ${account.bill} of ${account.terms.budget_cents / 100}")
        if self.idle_since is not None and not any(each.kind in HIDDEN_IDLE for each in self.case.happens):
            took = 2 * MINUTE_S + self.machines.fetch_s + OVER_S + 3 * MINUTE_S
            latest = max(idle_end, self.idle_since) + took
            if end > latest:
                self.flaws.append(f"lasted {(end - idle_end) / 60:.0f} min over its idle limit")

    def _repair(self) -> None:
        """Let the person put right what still is wrong."""
        self.waiting.clear()
        for undo in self.undo.values():
            undo()
        self.undo.clear()
        self.machines.reachable = True
        for each in self.computers:
            each.skew_s, each.disk, each.pulumi, each.left, each.has_timer = 0.0, "", "works", None, True

    def _rent_again(self) -> None:
        """Let the person rent again: no guard of the rental before may touch that."""
        account, case = self.account, self.case
        log_of(self.computers[0].stack, self.computers[0].home).forget()
        self.machines.idle_since, self.machines.stopped = None, False
        if case.again == "waiting":
            with account.approval():
                account.order(case.nodes, case.lease_h, None)
        else:
            account.order(case.nodes, case.lease_h, None)
        self.due, ours = account.lease_end(), {each.id for each in account.guests()}
        for _ in range(2):
            for each in self.computers:
                self._look(each)
            account.approve()
            account.pass_(MINUTE_S)
        if ours != {each.id for each in account.guests()}:
            self.flaws.append("cancelled the next rental")
        first = self.computers[0]
        first.write_state()
        self._check("down", first, first.down)

    def _say(self, text: str) -> None:
        passed = (self.account.clock - self.began) / 60
        self.log.append(f"{passed:7.1f} of {(self.due - self.began) / 60:.1f} min: {text}")


def play(case: Case, server: AccountServer, other_key: str, place: Path) -> Played:
    """Play a case in a folder; nothing of it is left running."""
    with opened(server, place / "account") as account:
        machines = Machines(fetch_s=case.fetch_s)
        names = ["laptop", "desk"][: 2 if case.second else 1]
        computers = [Computer(name, place / name, account, machines, other_key=other_key) for name in names]
        lease = f"{{lease: {case.lease_h}"
        account.order(case.nodes, case.lease_h, None, named=case.is_named)
        if case.budget_h:
            per_hour = sum((Decimal(fee.hourly) for each in account.items() for fee in each.fees), Decimal(0))
            budget = round(per_hour * case.budget_h + 1, 2)
            lease += f", budget: {budget}"
            account.limit(budget, named=case.is_named)
        section = lease + (f", idle: {case.idle_min}}}" if case.idle_min else "}")
        for each in computers:
            has_clone = each.name == "laptop" or case.second == "clone"
            if has_clone or case.second == "key":
                each.set_up(section if has_clone else None)
            each.knows_idle = has_clone and case.idle_min is not None
        computers[0].write_state()
        computers[0].look()
        if case.second == "mark":
            computers[1].take_up(account.key_file())
        played = Played(case, account, computers, machines)
        try:
            played.play()
        finally:
            for each in computers:
                each.let_go()
        return played
