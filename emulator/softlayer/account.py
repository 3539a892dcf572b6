"""The account: its records, its clock, its catalog, and the one lock around them."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from random import Random

from emulator.clock import Clock
from emulator.settings import Settings
from emulator.softlayer.catalog import Catalog, Datacenter, Flavor
from emulator.softlayer.fault_injection import Sky
from emulator.softlayer.price_list import load_catalog
from emulator.softlayer.records import Guest
from emulator.softlayer.store import Store

LOWEST_ID, IDS = 200_000, 700_000
USER_ID = 6117


class Account:
    """Everything that one SoftLayer account holds; whoever reads or changes it holds ``lock``."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.catalog: Catalog = load_catalog()
        self.clock = _resumed_clock(settings, store)
        self.lock = threading.RLock()
        self.changed: Callable[[], None] = lambda: None  # told after every change, so that machines can follow
        self.sky = Sky(settings.seed, settings.weather)
        self.not_emulated: Counter[str] = Counter()  # calls of methods that are not emulated
        self.trouble: str | None = None  # why the clock does not go on, as long as it does not
        self._random = Random(f"{settings.seed}-{store.facts.get('next_id', '')}")

    @property
    def id(self) -> int:
        """The account's number; two accounts on one machine have two, so that a client notices the wrong one."""
        return LOWEST_ID + int(self.settings.account_name.removeprefix("acct-"), 16) % IDS

    @property
    def waits_for_machines(self) -> bool:
        """Whether a guest is done only when its machine is; a clock that goes by calls waits for nothing real."""
        return not self.settings.clock_step_s

    @property
    def now(self) -> float:
        """The account's time."""
        return self.clock.now()

    def step(self) -> None:
        """Let a call take its time on a clock that goes by calls."""
        if self.settings.clock_step_s:
            self.clock.step(self.settings.clock_step_s)
            self.store.facts["clock_virtual0"] = repr(self.clock.virtual0)

    def next_id(self) -> int:
        """A fresh id."""
        return self.store.next_id()

    def token(self) -> str:
        """A fresh GUID, drawn from the account's seed."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def flavor_of(self, guest: Guest) -> Flavor:
        """The flavor of a guest."""
        flavor = self.catalog.flavor(guest.flavor)
        if flavor is None:
            raise LookupError(f"guest {guest.id}: flavor {guest.flavor} is not in the catalog any more")
        return flavor

    def datacenter_of(self, guest: Guest) -> Datacenter:
        """The datacenter of a guest."""
        datacenter = self.catalog.datacenter(guest.datacenter)
        if datacenter is None:
            raise LookupError(f"guest {guest.id}: datacenter {guest.datacenter} is not in the catalog any more")
        return datacenter


def _resumed_clock(settings: Settings, store: Store) -> Clock:
    """The clock of the last run, going on at today's rate; money does not stop when the emulator does."""
    facts = store.facts
    rate = 0.0 if settings.clock_step_s else settings.clock_rate
    if "clock_rate" in facts:
        last = Clock(float(facts["clock_rate"]), float(facts["clock_real0"]), float(facts["clock_virtual0"]))
        clock = last if last.rate == rate else last.with_rate(rate)
    elif settings.clock_start:
        clock = Clock(rate, virtual0=datetime.fromisoformat(settings.clock_start).timestamp())
    else:
        clock = Clock(rate)
    facts |= {
        "clock_rate": repr(clock.rate),
        "clock_real0": repr(clock.real0),
        "clock_virtual0": repr(clock.virtual0),
    }
    return clock
