"""Base of every emulated account: settings, records, clock and faults, behind one lock."""

import contextlib
import copy
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar, Self

from emulator.shared.fault_injection import FaultInjector
from emulator.shared.settings import Settings
from emulator.shared.store import Store, Table


@dataclass
class Clock:
    """Virtual seconds since the epoch: ``virtual0`` at real time ``real0``, then ``rate`` per second.

    At rate 0 only ``step`` moves it, so that a run does not depend on the speed of this computer.
    """

    rate: float
    real0: float = field(default_factory=time.time)
    virtual0: float = field(default_factory=time.time)

    def now(self) -> float:
        """The account's time in seconds since the epoch."""
        return self.virtual0 + (time.time() - self.real0) * self.rate

    def step(self, seconds: float) -> None:
        """Go on at once by some seconds of the account's time."""
        self.virtual0 += seconds

    def real_seconds_until(self, moment: float) -> float:
        """Real seconds until a clock that runs shows ``moment``."""
        return max(0.0, (moment - self.now()) / self.rate)


def resumed_clock(facts: dict[str, str], clock_rate: float, step_s: float, start: str) -> Clock:
    """The clock of the last run, kept in ``facts``; it went on while the emulator was stopped."""
    clock = Clock(0.0 if step_s else clock_rate)
    if "clock_rate" in facts:
        last = Clock(float(facts["clock_rate"]), float(facts["clock_real0"]), float(facts["clock_virtual0"]))
        clock.virtual0 = last.now()
    elif start:
        clock.virtual0 = datetime.fromisoformat(start).timestamp()
    facts |= {
        "clock_rate": repr(clock.rate),
        "clock_real0": repr(clock.real0),
        "clock_virtual0": repr(clock.virtual0),
    }
    return clock


def free_address(subnet: str, taken: Set[str | None]) -> str | None:
    """The first address of a subnet that nobody has; its very first one is the router's, or the bridge's."""
    _, *hosts = map(str, IPv4Network(subnet).hosts())
    return next((address for address in hosts if address not in taken), None)


class EmulatedAccount:
    """One account of a vendor; whoever reads or changes it holds ``lock``."""

    RECORDS: ClassVar[type[Store]]

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.store = store = self.RECORDS(settings.state)
        self.clock = resumed_clock(store.facts, settings.clock_rate, settings.clock_step_s, settings.clock_start)
        self.lock = threading.RLock()
        self.changed: Callable[[], None] = lambda: None  # called after every change, so that machines can follow
        self.fault_injector = FaultInjector(settings.seed, settings.FAULT_MODEL, settings.faults)
        self.not_emulated: Counter[str] = Counter()  # calls of methods that are not emulated
        self.trouble: str | None = None  # why the clock stands still, while it does
        self._random = Random(f"{settings.seed}-{store.facts.get('next_id', '')}")

    @property
    def waits_for_machines(self) -> bool:
        """Whether a guest is ready only when its machine is; not on a clock that goes by calls."""
        return not self.settings.clock_step_s

    @property
    def now(self) -> float:
        """The account's time."""
        return self.clock.now()

    def step(self) -> None:
        """Move a clock that goes by calls on by one call."""
        if self.settings.clock_step_s:
            self.move_clock(self.settings.clock_step_s)

    def move_clock(self, seconds: float) -> None:
        """Let the account's clock jump, back if ``seconds`` is below 0."""
        self.clock.step(seconds)
        self.store.facts["clock_virtual0"] = repr(self.clock.virtual0)

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """Save what the block changes, or undo it when the block raises; the caller holds the lock."""
        try:
            yield
            changed = self.store.flush()
        except BaseException:
            self.store.rollback()
            raise
        if changed:
            self.changed()

    def next_id(self) -> int:
        """A fresh id."""
        return self.store.next_id()

    def token(self) -> str:
        """A fresh GUID, drawn from the account's seed."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def with_tables(self, tables: Mapping[str, Table[Any]]) -> Self:
        """This account for reading, with other tables in place of its own."""
        seen = copy.copy(self)
        seen.store = SimpleNamespace(facts=self.store.facts, tables=tables, **tables)
        return seen
