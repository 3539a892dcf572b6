"""The account: its records, its clock, its catalogue, and the one lock around them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from random import Random

from .catalogue import Catalogue, Datacenter, Flavour
from .clock import Clock
from .price_list import load_catalogue
from .records import Guest
from .settings import Settings
from .store import Store

LOWEST_ID, IDS = 200_000, 700_000
USER_ID = 6117


class Account:
    """Everything that one SoftLayer account holds; whoever reads or changes it holds ``lock``."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.catalogue: Catalogue = load_catalogue()
        self.clock = _resumed_clock(settings, store)
        self.lock = threading.RLock()
        self.changed: Callable[[], None] = lambda: None  # told after every change, so that machines can follow
        self.trouble: str | None = None  # why the clock does not go on, as long as it does not
        self._random = Random(f"{settings.seed}-{store.facts.get('next_id', '')}")

    @property
    def id(self) -> int:
        """The account's number; two accounts on one machine have two, so that a client notices the wrong one."""
        return LOWEST_ID + int(self.settings.account_name.removeprefix("acct-"), 16) % IDS

    @property
    def now(self) -> float:
        """The account's time."""
        return self.clock.now()

    def next_id(self) -> int:
        """A fresh id."""
        return self.store.next_id()

    def token(self) -> str:
        """A fresh GUID, drawn from the account's seed."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def flavour_of(self, guest: Guest) -> Flavour:
        """The flavour of a guest."""
        flavour = self.catalogue.flavour(guest.flavour)
        if flavour is None:
            raise LookupError(f"guest {guest.id}: flavour {guest.flavour} is not in the catalogue any more")
        return flavour

    def datacenter_of(self, guest: Guest) -> Datacenter:
        """The datacenter of a guest."""
        datacenter = self.catalogue.datacenter(guest.datacenter)
        if datacenter is None:
            raise LookupError(f"guest {guest.id}: datacenter {guest.datacenter} is not in the catalogue any more")
        return datacenter

    def living_guests(self) -> list[Guest]:
        """The guests that are not cancelled, in the order of their ids."""
        return [guest for _, guest in sorted(self.store.guests.items()) if guest.cancelled is None]


def _resumed_clock(settings: Settings, store: Store) -> Clock:
    """The clock of the last run, going on at today's rate; money does not stop when the emulator does."""
    facts = store.facts
    if "clock_rate" in facts:
        last = Clock(float(facts["clock_rate"]), float(facts["clock_real0"]), float(facts["clock_virtual0"]))
        clock = last if last.rate == settings.clock_rate else last.with_rate(settings.clock_rate)
    else:
        clock = Clock(settings.clock_rate)
    facts |= {
        "clock_rate": repr(clock.rate),
        "clock_real0": repr(clock.real0),
        "clock_virtual0": repr(clock.virtual0),
    }
    return clock
