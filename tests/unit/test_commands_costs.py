"""`fab costs`: rentals, days and sums, from what accounts say and what was kept of them."""

import dataclasses
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from microcluster.accounts.registry import AccountSettings
from microcluster.accounts.shared.account import Identity
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.shared.key_file import CredentialsError
from microcluster.accounts.shared.receipt import Charge
from microcluster.commands import costs
from microcluster.commands.costs import Paid, rentals_of, sums
from microcluster.config.stack import ConfigError
from microcluster.core import stack_keys as keys
from microcluster.core.home import Home, Owner
from microcluster.rental import receipt as receipts
from microcluster.rental import statement
from microcluster.rental.account import Place
from microcluster.rental.statement import Statement, keep, kept

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINE = Owner("v100", "1f3a9c42")


def charge(id: str, opened: float, closed: float | None, dollars: str, currency: str = "USD") -> Charge:
    until = None if closed is None else NOON + timedelta(hours=closed)
    fees = (Decimal(3), Decimal(0), Decimal(dollars), currency)
    return Charge(id, "a guest", "gpu-0", "guest_core", NOON + timedelta(hours=opened), until, None, True, *fees)


def said(*charges: Charge, emulated: bool = False, hours: float = 100, account: str = "1") -> Statement:
    return Statement(MINE, emulated, NOON + timedelta(hours=hours), charges, account)


def answering(*rows: Charge) -> SimpleNamespace:
    """An account that lists these charges, and holds no terms."""
    who = Identity("1", "", "somebody", "https://api.test")
    return SimpleNamespace(
        charges=lambda owner, known: rows,
        is_emulated=False,
        identity=lambda: who,
        terms=lambda owner: None,
        check_sees_all=lambda doing: None,
    )


def leave(artifacts: Path, run: str, opened: float) -> None:
    folder = artifacts / MINE.stack / f"{run}-0a"
    folder.mkdir(parents=True)
    bill = [{"opened": (NOON + timedelta(hours=opened)).timestamp()}]
    (folder / "report.json").write_text(json.dumps({"run": run, "bill": bill}))


def test_each_rental_has_its_runs_hours_and_dollars(tmp_path) -> None:
    leave(tmp_path, "aaaa", 0)
    leave(tmp_path, "bbbb", 48)
    rows = (charge("1", 0, 10, "30"), charge("2", 1, 12, "33"), charge("3", 48, None, "156"))
    first, second = rentals_of(said(*rows), tmp_path)
    assert (first.runs, first.hours, first.cost, first.closed) == (("aaaa",), 12, 63, NOON + timedelta(hours=12))
    assert (second.runs, second.hours, second.cost, second.closed) == (("bbbb",), 52, 156, None)
    assert second.billed_per_hour == 3


def test_the_days_share_a_charge_by_their_time_and_add_up_to_it(tmp_path) -> None:
    (rental,) = rentals_of(said(charge("1", 0, 48, "144")), tmp_path)
    assert dict(rental.by_day()) == {date(2026, 3, 1): 36, date(2026, 3, 2): 72, date(2026, 3, 3): 36}
    assert costs.by_day([rental])["v100"] == {"2026-03-01": 36, "2026-03-02": 72, "2026-03-03": 36}


def test_real_and_emulated_dollars_and_node_hours_are_never_added_up(tmp_path) -> None:
    def one(statement: Statement) -> Paid:
        return rentals_of(statement, tmp_path)[0]

    real, emulated = said(charge("1", 0, None, "144")), said(charge("2", 0, 9, "27"), emulated=True)
    nodes = said(charge("3", 0, 9, "18", "node hours"))
    assert sums([one(real), one(emulated), one(nodes)]) == [
        "144.00 USD in 1 rental; open now: v100, 3 USD an hour",
        "18.00 node hours in 1 rental; nothing is open",
        "27.00 USD in 1 rental; nothing is open; emulated, nobody pays",
    ]
    assert set(costs.by_day([one(real), one(nodes)])) == {"v100"}


def home_at(folder: Path) -> Home:
    return Home(folder, folder / "cache")


def test_what_an_account_lists_no_more_stays_in_the_kept_receipt_and_its_own_word_counts_else(tmp_path) -> None:
    home = home_at(tmp_path)
    keep(home, said(charge("1", 0, 10, "30"), charge("2", 20, None, "3")))
    whole = keep(home, said(charge("2", 20, 30, "30")))
    assert [(row.id, row.so_far) for row in whole.charges] == [("1", 30), ("2", 30)]
    assert kept(home) == [whole]
    assert (home.receipts / "v100-1f3a9c42.1.json").is_file()


def test_what_was_open_and_is_listed_no_more_counts_until_it_was_last_seen(folder, capsys) -> None:
    keep(home_at(folder), dataclasses.replace(said(charge("9", -90, None, "9"), hours=-80), owner=MINE))
    assert costs.costs.code() == 3
    assert "39.00 USD in 2 rentals; nothing is open" in capsys.readouterr().out


def test_an_account_that_has_forgotten_everything_has_nothing_open(folder, monkeypatch, capsys) -> None:
    keep(home_at(folder), said(charge("9", 0, None, "9"), hours=3))
    monkeypatch.setattr(statement, "account_and_owner", lambda stack: (answering(), MINE))
    costs.costs.code()
    assert "9.00 USD in 1 rental; nothing is open" in capsys.readouterr().out


def test_what_an_account_hides_from_its_user_is_not_taken_for_ended(folder, monkeypatch, capsys) -> None:
    def refuse(doing: str) -> None:
        raise AccountError(f"{doing}: some may be billed unseen")

    keep(home_at(folder), said(charge("9", 0, None, "9"), hours=3))
    blind = answering()
    blind.check_sees_all = refuse
    monkeypatch.setattr(statement, "account_and_owner", lambda stack: (blind, MINE))
    assert costs.costs.code() == 3
    shown = capsys.readouterr()
    assert "9.00 USD in 1 rental; open now: v100" in shown.out and "some may be billed unseen" in shown.err
    assert kept(home_at(folder))[0].charges[0].is_open


def test_a_receipt_that_may_not_see_all_changes_no_kept_one(folder, monkeypatch, capsys) -> None:
    def refuse(doing: str) -> None:
        raise AccountError(f"{doing}: some may be billed unseen")

    keep(home_at(folder), said(charge("9", 0, None, "9"), hours=3))
    nothing = {"everything": tuple, "to_come": lambda *_: [], "check_sees_all": refuse}
    blind = SimpleNamespace(**nothing, is_emulated=False, identity=answering().identity)
    monkeypatch.setattr(receipts, "read_statement", lambda *_: (blind, said()))
    monkeypatch.setattr(receipts, "place_of", lambda stack: Place(AccountSettings("softlayer"), MINE))
    assert receipts.print_receipt("v100") == 3
    told = capsys.readouterr().err
    assert "Reading the receipt of stack v100: some may be billed unseen" in told and "not billed yet" not in told
    assert kept(home_at(folder))[0].charges[0].is_open


def test_a_torn_report_keeps_nobody_from_the_costs(folder, capsys) -> None:
    torn = folder / "artifacts" / "v100" / "aaaa-0a" / "report.json"
    torn.parent.mkdir(parents=True)
    torn.write_text('{"run": "aa')
    costs.costs.code()
    shown = capsys.readouterr()
    assert "30.00 USD in 1 rental" in shown.out
    assert f"{torn} is no whole report and is left out." in shown.err and "fab report --stack v100" in shown.err


def test_a_kept_receipt_of_another_account_or_of_none_is_never_joined(tmp_path):
    """Finding A10: an open machine became a closed one, and real dollars emulated ones."""
    home = home_at(tmp_path)
    keep(home, said(charge("1", 0, None, "30"), account="2"))
    old = said(charge("9", 0, None, "9"), emulated=True, account="")
    (home.receipts / "v100-1f3a9c42.json").write_bytes(statement.STATEMENT.dump_json(old))
    assert [row.id for row in keep(home, said(charge("2", 20, 30, "30"))).charges] == ["2"]
    assert {one.account: [row.is_open for row in one.charges] for one in kept(home)} == {
        "": [True],
        "1": [False],
        "2": [True],
    }


def test_what_was_kept_without_an_account_says_so_and_counts_once(folder, capsys):
    old = said(charge("1", 0, 10, "30"), charge("9", -90, None, "9"), account="")
    (folder / "receipts").mkdir()
    (folder / "receipts" / "v100-1f3a9c42.json").write_bytes(
        statement.STATEMENT.dump_json(dataclasses.replace(old, owner=MINE))
    )
    costs.costs.code(as_json=True)
    facts = json.loads(capsys.readouterr().out)["rentals"]
    assert [(one["account"], str(one["cost"])) for one in facts] == [(None, "9"), ("1", "30")]


def test_rentals_that_have_a_name_are_split_by_it_though_no_time_is_between_them(tmp_path):
    rows = charge("1", 0, 10, "30"), charge("2", 9, 20, "33"), charge("3", 19, None, "156")
    names = {"1": "1-1f3a9c42-7", "2": "1-1f3a9c42-7", "3": "1-1f3a9c42-9"}
    found = rentals_of(dataclasses.replace(said(*rows), names=names), tmp_path)
    assert [(one.id, one.cost) for one in found] == [("1-1f3a9c42-7", 63), ("1-1f3a9c42-9", 156)]


def test_a_damaged_receipt_is_left_out_with_a_sentence(tmp_path, capsys) -> None:
    home = home_at(tmp_path)
    keep(home, said(charge("1", 0, 10, "30")))
    (home.receipts / "v100-1f3a9c42.1.json").write_text("{")
    assert kept(home) == []
    assert "is no kept receipt" in capsys.readouterr().err


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A key folder with three stacks: one whose account answers, one without a key, one whose stack file is gone."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    monkeypatch.setattr(costs, "ARTIFACTS", tmp_path / "artifacts")
    for stack in ("v100", "p100", "old"):
        keys.ensure(tmp_path / "keys" / stack, stack)
    rows = (charge("1", 0, 10, "30"),)

    def account_of(stack: str) -> tuple[SimpleNamespace, Owner]:
        if stack == "p100":
            raise CredentialsError("no key")
        if stack == "old":
            raise ConfigError("There is no stack file of old.")
        return answering(*rows), MINE

    monkeypatch.setattr(statement, "account_and_owner", account_of)
    return tmp_path


def test_what_cannot_be_asked_is_named_and_counts_as_it_was_kept(folder, capsys) -> None:
    keep(home_at(folder), dataclasses.replace(said(charge("9", -90, -80, "9")), owner=Owner("old", "0badcafe")))
    assert costs.costs.code() == 3
    shown = capsys.readouterr()
    assert "39.00 USD in 2 rentals; nothing is open" in shown.out
    assert "Of old only what was kept here counts: There is no stack file of old." in shown.err
    assert "Of p100 only what was kept here counts: there is no key of the account." in shown.err


def test_the_page_has_a_bar_for_each_day_and_a_row_for_each_rental(folder, capsys) -> None:
    costs.costs.code(as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert [(one["stack"], one["cost"]) for one in found["rentals"]] == [("v100", "30")]
    page = (folder / "costs.html").read_text()
    assert page.count("<svg") == 1 and "<td>v100</td>" in page and "<script" not in page
    keep(home_at(folder), dataclasses.replace(said(charge("9", -9000, -8000, "9")), owner=Owner("old", "0badcafe")))
    costs.costs.code()
    page = (folder / "costs.html").read_text()
    assert "Dollars by day" in page and ">2025-02-19</text>" in page, "of a long time the labels are whole"
