"""What guards write down, and how far a rental was extended."""

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest
from played_guard import BEGAN, World, guard
from test_provider_check_and_diff import LEDGER

from microcluster.accounts.paperspace import views
from microcluster.accounts.shared.account import Claim, Extension, Market, Terms
from microcluster.accounts.shared.api_calls import Wire
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.resource import _check_budget
from microcluster.accounts.softlayer.account import _claim_of, claim_notes
from microcluster.accounts.softlayer.ledger import Ledgers
from microcluster.core.home import Owner, owner_in_notes
from microcluster.guard.decision import Begun, Limits
from microcluster.guard.records import GuardLog

OWNER = Owner("v100", "1f3a9c42")


def test_what_a_guard_has_found_is_read_by_every_other_one(tmp_path):
    book = GuardLog(tmp_path / "guards")
    record = guard(World(), Limits(budget=Decimal(80), lease_h=Decimal(3))).look()
    kept = replace(record, begun=Begun("lease", BEGAN), extension=Extension(Decimal(6)))
    book.write(kept)
    book.write(replace(record, who="watch@desk", at=record.at - timedelta(minutes=1)))
    assert [each.who for each in GuardLog(tmp_path / "guards").records()] == ["timer@laptop", "watch@desk"]
    assert GuardLog(tmp_path / "guards").records()[0] == kept


def test_a_record_that_was_cut_off_hides_no_other(tmp_path):
    book = GuardLog(tmp_path)
    book.write(guard(World(), Limits(lease_h=Decimal(3))).look())
    (tmp_path / "torn.json").write_text('{"who": "watch')
    assert len(book.records()) == 1


def test_a_make_up_begins_with_nothing_that_guards_have_found_before(tmp_path):
    book = GuardLog(tmp_path / "guards")
    book.forget()
    book.write(guard(World(), Limits(lease_h=Decimal(3))).look())
    book.forget()
    assert not book.records()


def test_an_extension_is_read_as_it_was_written_and_what_is_none_allows_nothing():
    words = ["360m-5000c", "90m-0c"]
    assert [Extension.read(word).word for word in words] == words
    assert not any(Extension.read(word) for word in ("", "360m", "-5m-0c", "360m-5000c;rm"))


def test_softlayers_key_and_the_name_of_paperspaces_claim_have_journal_and_extension_beside_their_owner():
    notes = claim_notes(OWNER, "0badcafe", Extension(Decimal(6), Decimal(50)).word)
    assert _claim_of({"id": 7, "notes": notes}) == Claim("7", "0badcafe", "360m-5000c")
    assert _claim_of({"id": 7, "notes": claim_notes(OWNER, "0badcafe")}) == Claim("7", "0badcafe")
    claim = Claim("9", "0badcafe", "90m-0c")
    name = f"{views.claim_label(claim)}.{OWNER}.microcluster"
    assert views.claim_of({"id": 9, "name": name}) == claim


def test_the_terms_of_a_rental_stand_in_the_keys_notes_where_a_version_before_them_reads_the_rest():
    terms = Terms(1795000000, 1800, None)
    notes = claim_notes(OWNER, "0badcafe", "360m-5000c", terms)
    assert _claim_of({"id": 7, "notes": notes}) == Claim("7", "0badcafe", "360m-5000c", terms)
    before = re.search(r" journal (?P<journal>[0-9a-f]+)(?: extended (?P<extended>[0-9]+m-[0-9]+c))?$", notes)
    assert before.groups() == ("0badcafe", "360m-5000c")
    assert owner_in_notes(notes) == OWNER
    assert Terms.read("1795000000s-xm-noc") is None


def test_a_claim_whose_journal_a_person_has_cut_off_takes_no_extension_that_nobody_could_read():
    written = []
    market = SimpleNamespace(claim=lambda owner: Claim("7", None), write_claim=lambda *claim: written.append(claim))
    with pytest.raises(ProviderError, match="names no journal any more"):
        Market.extension(market, OWNER, Extension(Decimal(6)))
    assert not written


class PlayedWire(Wire):
    per_second = 10.0

    def connect(self):
        return None


@pytest.mark.parametrize(("date", "ahead_h"), [("Mon, 23 Nov 2026 06:00:00 GMT", 2), ("no date", 0)])
def test_how_far_the_clocks_differ_is_read_from_every_answer(monkeypatch, date, ahead_h):
    monkeypatch.setattr("microcluster.accounts.shared.api_calls.time.time", BEGAN.timestamp)
    wire = PlayedWire(None)
    wire.heed({"Date": date})
    assert wire.clock_ahead_s == ahead_h * 3600


def test_a_budget_that_does_not_carry_a_run_by_the_accounts_own_price_is_refused_with_the_least_that_does():
    """Finding A18: it was compared with the catalog's price alone, and $30 were spent when the first look ended it."""
    spec = SimpleNamespace(stack="v100", budget_cents=2600, least_hours=4)
    price = {"pricePerHour": "15", "priceSource": "the account's own price"}
    with pytest.raises(ProviderError, match=r"\$26.00 does not pay 4 started hours at \$15.00 .*at least 60.00"):
        _check_budget(spec, price)
    _check_budget(SimpleNamespace(stack="v100", budget_cents=6000, least_hours=4), price)
    _check_budget(SimpleNamespace(stack="v100", budget_cents=None, least_hours=4), price)


class Priced(Ledgers):
    """A ledger whose account asks $15 an hour for all machines."""

    def checked(self, op, market, spec, old):
        return {"pricePerHour": "15", "priceSource": "the account's own price"}


def updated(began: Terms | None, before: str, budget_cents: int) -> list[Terms]:
    """Change the cluster of a stack, whose machines cost ``before`` so far; return the terms that were written."""
    written = []
    market = SimpleNamespace(terms=lambda owner, new=None: written.append(new) if new else began)
    inputs = {**LEDGER, "budgetCents": budget_cents, "leastHours": 4}
    Priced().update(SimpleNamespace(market=lambda account: market), "id", inputs, {"pricePerHour": before})
    return written


@pytest.mark.parametrize(("began", "before"), [(None, "15"), (Terms(7), "7.5")], ids=["nothing ordered", "dearer"])
def test_a_changed_cluster_that_the_budget_does_not_pay_is_refused(began, before) -> None:
    with pytest.raises(ProviderError, match=r"\$26.00 does not pay 4 started hours at \$15.00 .*at least 60.00"):
        updated(began, before, 2600)
    assert [each.budget_cents for each in updated(began, before, 6000)] == ([6000] if began else [])


def test_a_rented_cluster_of_the_same_price_takes_any_budget() -> None:
    assert updated(Terms(7), "15", 2600) == [Terms(7, budget_cents=2600)]
