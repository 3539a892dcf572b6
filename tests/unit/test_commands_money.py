"""What receipt and sweep decide: where the last rental begins, what differs from the state, what belongs to nobody."""

import dataclasses
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest

from microcluster.accounts.shared.account import Identity, Resource, Terms
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.receipt import Charge
from microcluster.accounts.shared.rental import Rental, last_rental, named_rental, rentals
from microcluster.commands import sweep as sweeping
from microcluster.commands.sweep import choose, orphaned
from microcluster.core.catalog.billing_rules import Rate
from microcluster.core.home import Owner
from microcluster.lifecycle.pulumi_state import Held, Snapshot
from microcluster.rental.holdings import Compared, compare, differences
from microcluster.rental.receipt import price
from microcluster.setup.errors import UNKNOWN, UserMistake

DAY = datetime(2026, 11, 21, tzinfo=UTC)
MINE, YOURS = Owner("local", "1f3a9c42"), Owner("v100", "0badcafe")


def charge(id: str, opened: int, closed: int | None, *, hourly: bool = True) -> Charge:
    until = None if closed is None else DAY + timedelta(hours=closed)
    fees = (Decimal(3), Decimal(40), Decimal(6), "USD")
    return Charge(id, "a guest", "gpu-0", "guest_core", DAY + timedelta(hours=opened), until, None, hourly, *fees)


def thing(kind: str, id: str, owner: Owner = MINE, *, alive: bool = True) -> Resource:
    more = {"since": DAY, "per_hour": Decimal(3)}
    return Resource(kind, id, f"{id}.{owner}", owner, is_billed=alive, is_alive=alive, **more)


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([], []),
        ([charge("a", 0, 1)], ["a"]),
        ([charge("a", 0, 1), charge("b", 2, 3)], ["b"]),
        ([charge("a", 0, 9), charge("b", 1, 2), charge("c", 5, 6)], ["a", "b", "c"]),
        ([charge("a", 0, 2), charge("b", 1, 4), charge("c", 3, 5), charge("d", 8, 9)], ["d"]),
        ([charge("a", 0, None), charge("b", 5, 6), charge("c", 8, 9)], ["a", "b", "c"]),
    ],
)
def test_the_last_rental_begins_where_the_mark_last_held_nothing(rows: list[Charge], shown: list[str]) -> None:
    assert [row.id for row in last_rental(rows, DAY).rows] == shown
    found = rentals(rows, DAY)
    assert [row for rental in found for row in rental.rows] == rows
    assert not any(rental.open for rental in found[:-1]), "what is open is always in the last one"


def test_an_open_charge_of_before_is_in_the_last_rental_where_rentals_have_names() -> None:
    rows = [charge("stuck", 0, None), charge("a", 1, 2), charge("b", 50, 60)]
    *earlier, last = rentals(rows, DAY, {"stuck": "1-1f3a9c42-9", "b": "1-1f3a9c42-9"})
    assert ([row.id for row in last.open], last.id) == (["stuck"], "1-1f3a9c42-9")
    assert [[row.id for row in rental.rows] for rental in earlier] == [["a"]], "what is of another is not added"


def test_a_charge_that_is_stuck_open_from_an_earlier_rental_shortens_no_lease_and_takes_no_budget() -> None:
    first = DAY + timedelta(hours=50)
    stuck = dataclasses.replace(charge("stuck", 0, None), so_far=Rate(Decimal(3)).cost(DAY, first + timedelta(hours=2)))
    rows = [stuck, charge("b", 50, None)]
    found = named_rental(rows, first + timedelta(hours=2), Terms(int(first.timestamp())), "1", MINE)
    assert [row.id for row in found.open] == ["stuck", "b"]
    assert (found.began, found.spent) == (first, 6 + 2 * 3)


def test_a_drive_that_is_kept_between_two_rentals_does_not_make_them_one() -> None:
    drive = dataclasses.replace(charge("drive", 0, None), is_kept=True)
    before, now = charge("a", 0, 1), charge("b", 50, None)
    for rows, split in (
        ([drive, before, now], [(before,), (now, drive)]),
        ([drive, before], [(before, drive)]),
        ([drive], [(drive,)]),
    ):
        assert [rental.rows for rental in rentals(rows, DAY)] == split
    bill = last_rental([drive, before], DAY)
    assert (bill.open, bill.kept) == ([], [drive]), "it is not left over"


def test_a_guard_counts_from_the_first_machine_and_a_kept_drive_from_then_on() -> None:
    opened, began, now = (DAY + timedelta(hours=each) for each in (0, 50, 52))
    drive = dataclasses.replace(charge("drive", 0, None), is_kept=True, so_far=Rate(Decimal(3)).cost(opened, now))
    rental = Rental(now, (charge("b", 50, None), drive))
    assert (rental.began, rental.spent) == (began, 6 + 2 * 3)


def test_a_monthly_item_has_a_monthly_price() -> None:
    assert price(charge("a", 0, 1)) == "3 an hour"
    assert price(charge("a", 0, 1, hourly=False)) == "40 a month"


GUEST = "softlayer:index:VirtualGuest"


def test_state_and_account_are_compared_by_kind_and_id() -> None:
    held = (
        *(Held(GUEST, name, known) for name, known in (("gpu-0", "1"), ("gpu-1", "2"), ("gpu-2", None))),
        Held("softlayer:index:Ledger", "l", "x"),
    )
    found = [thing("guest", "1"), thing("guest", "3"), thing("key", "2"), thing("guest", "4", alive=False)]
    compared = compare(found, Snapshot(4, held))
    assert [each.id for each in compared.account_only] == ["3", "2"]
    assert [each.id for each in compared.state_only] == ["2"]
    assert [each.name for each in compared.under_way] == ["gpu-2"]
    assert len(differences(compared, "local")) == 4
    kept = dataclasses.replace(thing("drive", "6"), is_kept=True)
    assert compare([thing("script", "5"), kept], Snapshot(0, ())).agrees, "a script has no resource of its own"
    (line,) = differences(Compared(broken="it is empty"), "local")
    assert line.endswith("it is empty. Repair it: fab recover --stack local")


def test_the_sweep_shows_what_belongs_to_no_living_stack() -> None:
    found = [thing("guest", "1"), thing("guest", "2", YOURS), thing("guest", "3", YOURS, alive=False)]
    assert [each.id for each in orphaned(found, frozenset({MINE.mark}))] == ["2"]


def test_only_what_is_named_is_chosen() -> None:
    found = [thing("guest", "1"), thing("key", "1"), thing("guest", "2", YOURS)]
    assert choose(found, ["guest/1", "2"], "") == [found[0], found[2]]
    assert choose(found, ["2"], YOURS.mark) == [found[2]]
    assert choose(found, [], "") == []
    assert choose(found, ["2", "guest/2", "2"], "") == [found[2]]
    for ids, mark in ((["1"], ""), (["77"], ""), ([], "ffffffff")):
        with pytest.raises(UserMistake, match="fab sweep"):
            choose(found, ids, mark)


def test_the_sweep_calls_nothing_left_over_that_its_user_may_not_see(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    account = SimpleNamespace(
        whoami=lambda: Identity("1", "", "somebody", "https://api.test"),
        resources=lambda: [],
        check_sees_all=lambda doing: (_ for _ in ()).throw(AccountError(f"{doing}: some may be billed unseen")),
    )
    monkeypatch.setattr(sweeping, "open_account", lambda *_: OpenedAccount(account))
    assert sweeping.sweep.code(stack="v100") == UNKNOWN
    shown = capsys.readouterr()
    assert "nothing is left over" not in shown.out
    assert "some may be billed unseen" in shown.err
    assert sweeping.sweep.code(stack="v100", as_json=True) == UNKNOWN
