"""Guards with the person in them: what people do to their computers, accounts and keys while something is rented.

More cases: `python -m tests.guarded --cases 1000`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from microcluster.commands.recover import recover
from microcluster.rental import recover as rental_recover
from microcluster.setup.errors import FAILED, UNKNOWN
from tests.guarded.__main__ import World, the_world
from tests.guarded.case import HOUR_S, MINUTE_S, OVER_S, case_of
from tests.guarded.computer import Computer, Look, Machines
from tests.guarded.misfortunes import BLOCKING, HINDERING
from tests.guarded.rented import STACK, Account, opened

SEED, CASES = 7, 16
LEASE_H = Decimal(3)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with the_world() as made:
        yield made


@dataclass
class Rental:
    """A rental with a lease, and the laptop that ordered it."""

    account: Account
    laptop: Computer
    place: Path

    def another(self) -> Computer:
        """Return a computer that has the key folder and what opens the account, and no limits."""
        desk = Computer("desk", self.place / "desk", self.account, self.laptop.machines)
        desk.set_up(None)
        return desk

    def wait_until(self, before_end_s: float) -> None:
        """Let time go by until so long before the end of the lease."""
        self.account.pass_(self.account.lease_end() - before_end_s - self.account.clock)

    def looks(self, number: int, computer: Computer | None = None) -> list[Look]:
        """Look every minute until nothing is rented, so often at most."""
        found = []
        while len(found) < number and self.account.open:
            found.append((computer or self.laptop).look())
            self.account.pass_(MINUTE_S)
        return found


@pytest.fixture
def rental(world, tmp_path) -> Iterator[Rental]:
    with ExitStack() as stack:
        account = stack.enter_context(opened(world.server, tmp_path / "account"))
        laptop = Computer("laptop", tmp_path / "laptop", account, Machines(), other_key=world.other_key)
        laptop.set_up(f"{{lease: {LEASE_H}}}")
        account.order(2, LEASE_H, None)
        laptop.write_state()
        assert laptop.look().code == 0
        stack.callback(laptop.let_go)
        yield Rental(account, laptop, tmp_path)


@pytest.mark.parametrize("number", range(CASES))
def test_a_rental_keeps_its_limits_whatever_the_person_does(world, number):
    flaws, log = world(case_of(SEED, number))
    assert flaws == [], "\n".join(log)


@pytest.mark.parametrize("kind", HINDERING)
def test_a_lease_is_kept_whatever_happens_to_the_computer(rental, kind):
    """Findings A2, A6, A8, A12 and A15: log, locks, stack file, state, engine and Pulumi's lock had to work first."""
    rental.laptop.pulumi = "missing"
    undo = HINDERING[kind](rental.laptop)
    assert rental.laptop.look().code == (UNKNOWN if kind == "machines that do not answer" else 0)
    rental.wait_until(14 * MINUTE_S)
    rental.looks(16)
    assert not rental.account.open
    assert rental.account.last_end <= rental.account.lease_end() + OVER_S
    assert rental.account.touched() == []
    undo()


@pytest.mark.parametrize("kind", [each for each in BLOCKING if each != "sleep"])
def test_a_partly_visible_account_is_unknown_and_ends_once_visible(rental, kind):
    """Findings A3 and A5: "nothing is rented" or "within its limits", exit code 0, and the timer was removed."""
    undo = BLOCKING[kind](rental.laptop)
    found = [rental.laptop.look().code, rental.laptop.receipt().code]
    if kind.startswith("rights"):  # What may be hidden counts as open.
        assert found == [0 if kind == "rights to cancel are taken" else UNKNOWN, FAILED]
    else:
        assert found == [UNKNOWN, UNKNOWN]
    assert rental.laptop.has_timer
    rental.wait_until(14 * MINUTE_S)
    codes = {each.code for each in rental.looks(2)}
    assert codes == {FAILED} and rental.laptop.has_timer
    undo()
    rental.looks(12)
    assert not rental.account.open
    assert rental.account.last_end <= rental.account.lease_end() + OVER_S


@pytest.mark.parametrize("has_clone", [True, False])
def test_an_order_that_is_not_billed_yet_is_not_the_rental_before(rental, has_clone):
    """Finding A1: it was joined to the last closed rental, whose lease was over, and cancelled."""
    account, looking = rental.account, rental.laptop if has_clone else rental.another()
    rental.wait_until(14 * MINUTE_S)
    rental.looks(16)
    account.pass_(600)
    with account.approval():
        account.order(2, LEASE_H, None)
    ordered = {each.id for each in account.guests()}
    for step in (lambda: None, account.approve, lambda: account.pass_(2 * HOUR_S)):
        step()
        looking.look()
        assert {each.id for each in account.guests()} == ordered


def test_a_clock_that_jumps_while_the_account_is_away_cancels_nothing_early(rental):
    undo = BLOCKING["no network"](rental.laptop)
    HINDERING["a clock a day ahead"](rental.laptop)
    rental.looks(2)
    undo()
    assert {each.code for each in rental.looks(2)} == {0} and len(rental.account.open) == 2
    rental.wait_until(14 * MINUTE_S)
    rental.looks(4)
    assert not rental.account.open


@pytest.mark.parametrize("right", [each for each in BLOCKING if each.startswith("rights")])
def test_a_cancellation_that_fails_leaves_the_rentals_terms_in_the_account(rental, right):
    """Another lease in the stack file counted from then on, with exit code 0."""
    rental.laptop.pulumi = "missing"
    undo = BLOCKING[right](rental.laptop)
    rental.wait_until(14 * MINUTE_S)
    rental.looks(2)
    undo()
    assert len(rental.account.claims()) == 1 and len(rental.account.open) == 2
    HINDERING["another lease in the stack file"](rental.laptop)
    rental.looks(12)
    assert not rental.account.open


def test_a_guard_at_ctrl_z_stands_in_no_other_ones_way(rental):
    rental.wait_until(16 * MINUTE_S)
    rental.laptop.hold(f"{STACK}.guard", "fab guard")
    rental.wait_until(14 * MINUTE_S)
    rental.looks(16)
    assert not rental.account.open
    assert rental.account.last_end <= rental.account.lease_end() + OVER_S


def test_a_guard_acts_while_recover_asks_its_question(rental, monkeypatch):
    """Finding A6: the question was asked inside the lock."""
    rental.wait_until(14 * MINUTE_S)
    monkeypatch.setattr(rental_recover, "agrees", lambda question: rental.looks(3) == [])
    rental.laptop.run(recover)
    assert not rental.account.open


@pytest.mark.parametrize("command", ["guard", "down"])
@pytest.mark.parametrize("engine", ["works", "missing"])
def test_a_laptop_asleep_while_cancelling_spares_what_was_rented_elsewhere(rental, command, engine):
    account, laptop = rental.account, rental.laptop

    def sleep() -> None:
        if engine == "missing":
            account.cancel()
        if not account.open:
            laptop.meanwhile = lambda: None
            account.pass_(9 * HOUR_S)
            account.order(2, LEASE_H, None)
            account.pass_(600)

    laptop.meanwhile, laptop.pulumi = sleep, engine
    rental.wait_until(14 * MINUTE_S)
    codes = [rental.laptop.look().code if command == "guard" else laptop.down().code]
    assert len(account.open) == 2, codes
    assert laptop.look().code == 0 and len(account.open) == 2


@pytest.mark.parametrize("has_keys", [True, False])
def test_a_second_computer_without_limits_keeps_the_lease_of_a_sleeping_one(rental, has_keys):
    desk = rental.another() if has_keys else Computer("desk", rental.place / "desk", rental.account, Machines())
    assert (desk.look() if has_keys else desk.take_up(rental.account.key_file())).code == 0
    rental.wait_until(14 * MINUTE_S)
    rental.looks(16, desk)
    assert not rental.account.open
    assert rental.account.last_end <= rental.account.lease_end() + OVER_S
