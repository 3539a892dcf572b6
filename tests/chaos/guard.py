"""The guard's sweep: at the end of a lease it is killed at every call, or meets faults; then guards look until it is over.

Real commands of `fab guard`, each in a process of its own, without the two things that they can do without: machines, which never
answer here, and Pulumi, which never cancels. So the account's own calls end what is rented.
"""

import io
import json
import signal
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from microcluster.command_line.command import interrupt_at_end_of_session
from microcluster.commands.guard import guard
from microcluster.commands.receipt import receipt
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.guard import actions
from tests.chaos.accounts import CLOCK_RATE
from tests.chaos.checker import Verdict, billed, wrong_bill
from tests.chaos.engine import Verb
from tests.chaos.fork_server import Process, fork
from tests.chaos.market import LEASE_H, Market
from tests.chaos.paperspace import PAPERSPACE
from tests.chaos.provider import STACK
from tests.chaos.softlayer import SOFTLAYER
from tests.chaos.stage import Blow, Stage
from tests.chaos.wire import Moment, Strike
from tests.chaos.workers import Theatre, theatre

COMMANDS = "tests.chaos.guard"
MARKETS = {each.vendor: each for each in (SOFTLAYER, PAPERSPACE)}
MOST_CALLS, STORMS, TLS_EVERY = 200, 30, 5
DUE_H, BILLED_H = LEASE_H - 0.2, (LEASE_H, LEASE_H + 3)
"""Times of the guards' looks, and number of billed hours: a busy computer loses some."""
LIMIT_S = 180.0
OVER, NOTHING_TO_TAKE_UP = 0, 2
ENDED = (OVER, NOTHING_TO_TAKE_UP)
"""The exit codes that may stand only where nothing is billed."""
BAD_WORDS = ("Traceback", "mistake in the program")


def main(arguments: list[str]) -> int:
    """Carry out one command; print its exit code and what it said as JSON."""
    verb, mark = arguments
    interrupt_at_end_of_session()
    config.STACKS = Home.of().root / "stacks"
    actions.apart = actions.run_part_apart = lambda *_, **__: None
    with redirect_stdout(io.StringIO()) as said:
        if verb == "receipt":
            code = receipt.code(stack=STACK, as_json=True, show_all=True)
        else:
            code = guard.code(stack=STACK, mark=mark)
    print(json.dumps([code, said.getvalue()]), flush=True)
    return 0


@dataclass(frozen=True)
class Case:
    """One run: a guard that is struck at a call, or some that meet faults; then guards here or elsewhere look until it is over."""

    vendor: str
    number: int
    """Number of the call that is struck; 0 where faults are injected."""
    moment: Moment
    blow: Blow
    elsewhere: bool
    """Whether the next guard is of another computer, which has the account's key and the mark alone."""
    seed: int

    @property
    def market(self) -> Market:
        """The account."""
        return MARKETS[self.vendor]

    @property
    def settings(self) -> dict[str, Any]:
        """In a third of the runs the account's lists lag behind; some are over TLS."""
        chance, is_tls = Random(self.seed), self.seed % TLS_EVERY == 0
        settings: dict[str, Any] = {"seed": self.seed, "tls": is_tls}
        settings["list_lag_s"] = max(chance.uniform(-2, 1) * self.market.longest_lag_s, 0.0)
        if not self.number:
            settings["faults"] = self.market.fault_rates(chance, is_tls=is_tls)
        return settings

    def play(self, theatre: Theatre) -> Verdict:
        """Rent until the lease is over, strike or inject faults, look until the rental is over, and judge."""
        chance = Random(self.seed)
        with theatre.stage(self.market, **self.settings) as stage:
            faults = stage.rented.stop_faults()
            guards = Guards(stage)
            guards.rent(looks=chance.randint(0, 1))
            if self.number:
                guards.struck(self.number, self.moment, self.blow)
            else:
                stage.rented.inject(faults)
                for _ in range(chance.randint(1, 3)):
                    guards.look(elsewhere=chance.random() < 0.5)
                stage.rented.stop_faults()
            guards.finish(elsewhere=self.elsewhere)
            return stage.verdict

    def __str__(self) -> str:
        what = f"struck with {self.blow} at call {self.number}, {self.moment.name}" if self.number else "meets faults"
        return f"{self.vendor}: a guard {what}; then {'another computer' if self.elsewhere else 'it looks again'}; seed {self.seed}"


class Guards:
    """The guards of a stage's rental: on the computer that ordered, and on another one that has key and mark alone."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.verdict = stage, stage.verdict
        self.here, self.elsewhere = stage.home, stage.home.with_name("elsewhere")
        market, keys = stage.rented.market, self.here / "keys" / STACK
        name = market.vendor
        values = {f"{name}:{market.key_setting}": str(stage.rented.config_file), f"{name}:timeScale": 1 / CLOCK_RATE}
        sections = {"microcluster:cluster": {"account": name}, "microcluster:guard": {"lease": LEASE_H}}
        for folder in (keys, self.here / "stacks", self.elsewhere / "stacks"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"Pulumi.{STACK}.yaml").write_text(json.dumps({"config": values | sections}))
        self.mark = stage.owner.rpartition("-")[2]
        (keys / "mark").write_text(self.mark)
        (keys / "id_ed25519.pub").write_text("ssh-ed25519 nobody\n")

    def rent(self, looks: int) -> None:
        """Bring the stack up, have a guard look in time as often as this, and let the end of the lease come near."""
        self.stage.succeeds(Verb.UP)
        for _ in range(looks):
            self._run(self.here, "guard")
        self.stage.rented.pass_hours(DUE_H)

    def struck(self, number: int, moment: Moment, blow: Blow) -> None:
        """Have a guard look that is struck at a call."""
        running: list[Process] = []

        def act() -> None:
            running[0].signal(signal.Signals[f"SIG{blow}"])
            running[0].ended(LIMIT_S if blow is Blow.KILL else 0)

        self.stage.wire.arm(Strike(number, moment, act, is_cut=lambda: bool(running and running[0].ended())))
        self._run(self.here, "guard", running=running)

    def look(self, *, elsewhere: bool = False) -> int | None:
        """Have a guard look; judge and return its exit code."""
        self.stage.wire.arm(None)
        code, said = self._run(self.elsewhere, "guard", self.mark) if elsewhere else self._run(self.here, "guard")
        notes = (self.stage.home / "guard.log").read_text()
        text = f"a guard {'elsewhere' if elsewhere else 'here'} ended with {code} and said '{(said + notes)[-800:]}'"
        still = {each.name for each in billed(self.stage.rented.history()) if each.closed is None} & self.stage.names
        if code in ENDED and still:
            self.verdict.orphans.append(f"{', '.join(sorted(still))} is billed and {text}")
        if code is None or not (said + notes).strip() or any(words in notes for words in BAD_WORDS):
            self.verdict.prompts.append(text)
        return code

    def finish(self, *, elsewhere: bool) -> None:
        """Look until it is over, on this computer as well; compare the receipt with the bill, and take the stack down."""
        stage = self.stage
        codes = [self.look(elsewhere=elsewhere)]
        if elsewhere or codes != [OVER]:
            codes.append(self.look())
        if codes[-1] != OVER or (elsewhere and codes[0] not in ENDED):
            self.verdict.prompts.append(f"guards that nobody disturbed ended with {codes}")
        code, said = self._run(self.here, "receipt")
        shown = json.loads(said or '{"items": [], "total": "0", "open": -1}')
        self.verdict.wrong_dollars += wrong_bill(stage.rented.history(), stage.owner, BILLED_H, shown)
        if code:
            self.verdict.wrong_dollars.append(f"the receipt ended with {code}")
        stage.judge(frozenset(), 1)
        stage.succeeds(Verb.DESTROY)
        stage.judge(frozenset(), 1)

    def _run(
        self, home: Path, verb: str, mark: str = "", running: list[Process] | None = None
    ) -> tuple[int | None, str]:
        """Run a command; return its exit code, None for one that was killed or hangs, and what it printed."""
        user = {"MICROCLUSTER_HOME": str(home), "HOME": str(home), "NO_PROXY": "127.0.0.1"}
        log = self.stage.home / "guard.log"
        log.write_text("")
        process = fork(COMMANDS, [verb, mark], user, log)
        if running is not None:
            running.append(process)
        try:
            return tuple(json.loads(process.first_line(LIMIT_S) or '[null, ""]'))
        except TimeoutError:
            return None, f"it was not over in {LIMIT_S:g} s"
        finally:
            process.signal(signal.SIGKILL)
            process.release()


def cases(seed: int) -> Iterator[Case]:
    """List each call of a guard at each moment; then runs that meet faults."""
    chance = Random(seed)
    strikes = list(product(range(1, MOST_CALLS + 1), Moment))
    for vendor in MARKETS:
        for place, (number, moment) in enumerate(strikes + [(0, Moment.BEFORE)] * STORMS):
            blow = chance.choice((Blow.KILL, Blow.KILL, Blow.TERM))
            yield Case(vendor, number, moment, blow, chance.random() < 0.4, seed * 1000 + place)


def count_calls(vendor: str) -> int:
    """Count the calls of a guard that ends a rental."""
    with theatre().stage(MARKETS[vendor]) as stage:
        guards = Guards(stage)
        guards.rent(looks=0)
        code = guards.look()
        assert code == OVER, stage.verdict
        return len(stage.wire.calls)
