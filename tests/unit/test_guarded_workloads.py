"""Workloads chosen at random, each rented in an emulated account whose clock is stepped, and held to its limits by guards.

They fail, hang and fall idle; guards are killed, networks are cut, and two guards look at once.
"""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from played_guard import World, guard, look, watch

from emulator.paperspace import billing as team_billing
from emulator.paperspace import lifecycle
from emulator.softlayer import transactions
from emulator.softlayer.billing import charged
from microcluster.accounts.paperspace import bills, views
from microcluster.accounts.shared.rental import Rental
from microcluster.accounts.softlayer import billing
from microcluster.guard.decision import Limits
from tests.unit.emulated import Emulated
from tests.unit.emulated_paperspace import EmulatedPaperspace

LOOK_EVERY_S, MOST_LOOKS = 60, 800
CUT_MIN = 4
FATES = {"works": "running", "finishes": "finished", "fails": "failed", "hangs": "stalled", "idles": "running"}


class Guests(World):
    """Guests of an emulated SoftLayer account."""

    def __init__(self, folder: Path, nodes: int) -> None:
        super().__init__(opened=[])
        self.account = Emulated(folder)
        self.ids = [self.account.order(f"gpu-{rank}") for rank in range(nodes)]
        self.pass_(60)
        self.opened = [row.opened for row in self.rental().open]

    def pass_(self, seconds: float) -> None:
        """Let the account's clock go on, and what the account has begun with it."""
        clock = self.account.account.clock
        clock.step(seconds)
        transactions.advance(self.account.account)
        super().pass_(seconds)
        self.now = datetime.fromtimestamp(self.account.account.now, UTC)

    def rental(self) -> Rental:
        """Read the billing items as the provider does."""
        rows = self.account.call("Account", "getAllTopLevelBillingItems", mask=billing.CHARGE_MASK)
        self.now = datetime.fromtimestamp(self.account.account.now, UTC)
        return Rental(self.now, tuple(billing.charge(row, still_billed=False) for row in rows))

    def end(self) -> None:
        """Cancel all guests."""
        for each in self.ids:
            self.account.call("Virtual_Guest", "deleteObject", identifier=each)
        super().end()

    @property
    def bill(self) -> Decimal:
        """The invoice that the account would write now."""
        items = self.account.account.store.billing_items.read_all()
        return sum((charged(item, self.account.account.now) for item in items), Decimal(0))


class Machines(World):
    """Machines of an emulated Paperspace account with a private network."""

    def __init__(self, folder: Path, nodes: int) -> None:
        super().__init__(opened=[])
        self.team = EmulatedPaperspace(folder)
        self.network = self.team.home
        self.ids = [self.team.order(f"gpu-{rank}") for rank in range(nodes)]
        self.pass_(600)
        self.opened = [row.opened for row in self.rental().open]

    def pass_(self, seconds: float) -> None:
        """Let the account's clock go on, and what the account has begun with it."""
        self.team.account.clock.step(seconds)
        lifecycle.advance(self.team.account)
        super().pass_(seconds)
        self.now = datetime.fromtimestamp(self.team.account.now, UTC)

    def rental(self) -> Rental:
        """Read what lives as the provider does, which prices it by the catalog."""
        living = []
        if not self.ended:
            living = [views.network(self.team.call("GET", f"/private-networks/{self.network}"))]
            living += [views.machine(self.team.call("GET", f"/machines/{each}")) for each in self.ids]
        self.now = datetime.fromtimestamp(self.team.account.now, UTC)
        return Rental(self.now, tuple(charge for each in living for charge in bills.charges_of(each, None, self.now)))

    def end(self) -> None:
        """Stop and delete all machines, then the network."""
        for method, path in (("PATCH", "/stop"), ("DELETE", "")):
            for each in self.ids:
                self.team.call(method, f"/machines/{each}{path}")
            self.pass_(60)
        self.team.call("DELETE", f"/private-networks/{self.network}")
        super().end()

    @property
    def bill(self) -> Decimal:
        """What the account has charged for everything."""
        items = self.team.account.store.billing_items.read_all()
        return sum((team_billing.charged(item, self.team.account.now) for item in items), Decimal(0))


def flaws(seed: int, folder: Path) -> list[str]:
    """Rent, train, and be held to the limits; return what must not be."""
    chance = random.Random(seed)
    world = (Guests, Machines)[seed % 2](folder, chance.randint(1, 3))
    began, per_hour = min(world.opened), world.rental().per_hour
    budget = chance.choice([None, per_hour * chance.randint(20, 60) / 10])
    limits = Limits(budget, Decimal(chance.randint(8, 60)) / 10, chance.choice([None, 1800.0]))
    guards = [guard(world, limits, f"guard{one}@desk") for one in range(chance.choice([1, 2]))]
    world.fetch_s, world.refusals = chance.choice([30, 300, 900]), chance.choice([0, 0, 1])
    fate, at, cut_at = chance.choice(list(FATES)), chance.randint(2, 200), chance.randint(2, 300)
    cut = chance.choice(["", "account", "machines"])
    world.dies_in = chance.choice(["", "after stop", "after fetch", "before cancel"])
    for number in range(MOST_LOOKS):
        if number == at and world.run.state == "running":
            world.run = replace(world.run, state=FATES[fate])
            if fate == "idles":
                world.fall_idle()
        if cut and number == cut_at:
            world.cuts, world.cut_until = {cut}, world.now + timedelta(minutes=CUT_MIN)
        watch(world, *guards, hours=LOOK_EVERY_S / 3600, every_s=LOOK_EVERY_S)
        if world.is_over:
            break
    assert world.is_over, "it never ended"
    bill, fetched = world.bill, world.fetched
    longest = timedelta(hours=float(limits.lease_h), minutes=5 + (CUT_MIN if cut == "account" else 0))
    for _ in range(7):
        world.pass_(24 * 3600)
    found = {
        "spent more than its budget": budget is not None and bill > budget,
        "lasted over its lease": world.last_end - began > longest,
        "billed afterwards": world.bill != bill,
        "lost what could be fetched": not fetched and world.fetch_s < 900 and cut != "machines",
    }
    return [text for text, holds in found.items() if holds]


@pytest.mark.parametrize("seed", range(16))
def test_no_workload_breaks_budget_or_lease_costs_on_or_loses_files(seed, tmp_path):
    assert flaws(seed, tmp_path / "account") == []


def test_case_6_guards_and_a_person_cancel_each_of_40_orders_once(tmp_path):
    world, steps = Guests(tmp_path / "account", 40), []
    limits = Limits(lease_h=Decimal("0.25"))
    one, two = guard(world, limits), guard(world, limits, "watch@desk")
    world.fetch_s = 30
    world.during = {"stop": lambda: steps.append(look(two).verdict.step), "fetch": world.end}
    world.pass_(12 * 60)
    look(one)
    calls = [each for each in world.account.history("call") if each["method"].endswith("deleteObject")]
    paid = world.bill
    world.pass_(24 * 3600)
    assert (steps, len(calls), world.bill, world.is_over) == (["end"], 40, paid, True)
    assert "cancel" not in world.log and look(two).verdict.step == "over"
