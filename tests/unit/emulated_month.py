"""A month of an account's life on its own clock: guests and volumes come and go, the bill is read daily, an invoice ends it."""

import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from emulator.softlayer import cancellation, guests, invoices, portal, transactions
from emulator.softlayer.account import Account
from emulator.softlayer.billing import bill
from emulator.softlayer.create_template import read_template
from emulator.softlayer.records import BillingItem
from emulator.softlayer.settings import Settings
from tests.unit.emulated import template

HOURS = 730
HOUR_S = 3600.0
LIFE_H = 6
READ_EVERY_H = 24


@dataclass(frozen=True)
class Month:
    """What the month took, and what it came to."""

    cpu_s: float
    items: int
    lines: int
    total: Decimal


def month(state: Path, *, guests_per_hour: int, hours: int = HOURS) -> Month:
    """Live through a month; each guest is cancelled after six hours, and every sixth hour a volume takes another's place."""
    account = _account(state)
    began = time.process_time()
    living: list[list[BillingItem]] = []
    for hour in range(hours):
        account.clock.step(HOUR_S)
        transactions.advance(account)
        rented = [_guest(account, f"gpu-{hour}-{number}") for number in range(guests_per_hour)]
        volumes = [portal.order(account, portal.VOLUME) for _ in range(guests_per_hour) if hour % LIFE_H == 0]
        living.append(rented + volumes)
        for item in living.pop(0) if len(living) > LIFE_H else []:
            cancellation.cancel(account, item, immediate=True)
        account.store.flush()
        if hour % READ_EVERY_H == 0:
            bill(account)
    record = invoices.invoice(account, invoices.BEGINNING, account.now)
    cpu_s = time.process_time() - began
    return Month(cpu_s, len(record.entries), sum(len(entry.lines) for entry in record.entries), record.total)


def _guest(account: Account, hostname: str) -> BillingItem:
    _, (guest,) = guests.place(account, [read_template(account, template(hostname))])
    return account.store.billing_items[guest.billing_item_id]


def _account(state: Path) -> Account:
    settings = Settings(
        state,
        machines="none",
        clock_step_s=1.0,
        clock_start="2026-01-01T00:00:00+00:00",
        provisioning_s=600.0,
        reclaim_s=600.0,
        instance_limit=10_000,
        public_subnet="198.18.0.0/16",
        private_subnets=("10.112.0.0/16", "10.113.0.0/16"),
    )
    return Account(settings)
