"""The journal: on the disk before the order, readable after any crash."""

import json
import os
import stat
import threading
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from microcluster.accounts.shared import journal, sweep
from microcluster.accounts.shared import order as orders
from microcluster.accounts.shared.account import Identity, OrderRequest, Resource
from microcluster.accounts.shared.api_calls import SharedList
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.journal import Instant, Intent, Journal
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.api import LISTS_LAG_S, LONGEST_ORDER_S
from microcluster.accounts.softlayer.billing import REFUSED
from microcluster.core.home import Owner

SETTLED_S = LISTS_LAG_S + LONGEST_ORDER_S

MARK = "1f3a9c42"
INTENT = Intent("gpu-0", "guest", "gpu-0")


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    return Journal("dev", MARK, "278444")


def test_an_intent_is_unresolved_until_its_outcome_is_written(book):
    first, second = book.intend(INTENT), book.intend(INTENT)
    assert Journal("dev", MARK, "278444").unresolved() == [first, second], "another process reads it too"
    book.ordered(first.attempt, "101")
    book.refused(second.attempt, "SoftLayer_Exception_Public")
    assert book.unresolved() == []


def test_what_was_ordered_is_known_by_its_id_until_it_is_closed(book):
    book.ordered(book.intend(INTENT).attempt, "101")
    second = book.intend(INTENT)
    book.ordered(second.attempt, "102")
    book.closed("guest", "101")
    book.closed("guest", "999")
    assert [each.attempt for each in book.accepted("guest").values()] == [second.attempt]
    assert Journal("dev", MARK, "1").accepted("guest") == {}
    assert set(book.made("guest")) == {"101", "102"}
    assert len(book.events()) == 5


def test_intents_are_distinguished_by_account_name_and_kind(book):
    book.intend(INTENT)
    assert Journal("dev", MARK, "1").unresolved() == []
    assert book.unresolved("gpu-1") == []
    assert book.unresolved("gpu-0", "BlockVolume") == []
    assert len(book.unresolved("gpu-0", "guest")) == 1


def test_two_resources_adopted_for_one_order_are_known_until_each_is_closed(book):
    attempt = book.intend(INTENT).attempt
    book.ordered(attempt, "101")
    book.ordered(attempt, "102")
    assert set(book.accepted("guest")) == set(book.made("guest")) == {"101", "102"}
    book.closed("guest", "102")
    assert set(book.accepted("guest")) == {"101"}
    book.closed("guest", "101")
    assert (book.accepted("guest"), book.unresolved()) == ({}, [])


def test_only_the_owner_may_read_it(book):
    book.intend(INTENT)
    assert book.path.name == f"dev-{MARK}.jsonl"
    assert stat.S_IMODE(book.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(book.path.parent.stat().st_mode) == 0o700


def test_an_unreadable_journal_is_not_taken_for_an_empty_one(book):
    assert book.events() == book.unresolved() == []  # There is none yet.
    book.path.mkdir(parents=True)  # Root may read a file of any mode, and nobody reads a folder.
    for ask in (book.events, book.identity, book.unresolved):
        with pytest.raises(
            ProviderError, match=rf"reading the journal {book.path}: Is a directory.*run the command again"
        ):
            ask()


@pytest.mark.parametrize("percent", range(0, 100, 7))
def test_a_torn_last_line_is_no_event_and_spoils_none(book, percent):
    whole = book.intend(INTENT)
    book.intend(INTENT)
    text = book.path.read_text()
    first, second = text.splitlines()
    book.path.write_text(f"{first}\n{second[: len(second) * percent // 100]}")
    later = book.intend(INTENT)
    assert [each.attempt for each in book.unresolved()] == [whole.attempt, later.attempt]


@pytest.mark.parametrize(
    "line", ["", "null", "[]", "7", "{", '{"event": "intent"}', '{"event": "ordered", "id": 3}', "\x00"]
)
def test_a_line_that_is_none_of_ours_is_passed_over(book, line):
    written = book.intend(INTENT)
    with book.path.open("a") as file:
        file.write(
            f"{line}\n{json.dumps({'event': 'intent', 'attempt': 'x', 'at': 'yesterday', 'account': '278444'})}\n"
        )
    assert book.unresolved() == [written]


def test_two_things_of_one_number_are_two_things(book):
    guest = book.intend(INTENT)
    key = book.intend(replace(INTENT, kind="SshKey", name="key"))
    book.ordered(guest.attempt, "101")
    book.ordered(key.attempt, "101")
    assert book.accepted("guest")["101"].attempt == guest.attempt
    book.closed("SshKey", "101")
    assert book.accepted("guest")["101"].attempt == guest.attempt
    assert book.accepted("SshKey") == {}


def test_an_order_is_refused_if_the_disk_holds_half_a_line(book, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[: len(content) // 2]))
    with pytest.raises(ProviderError, match="No space left on device.*Nothing was ordered"):
        book.intend(INTENT)


def test_an_intent_is_on_the_disk_before_the_call_returns(book, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    book.intend(INTENT)
    assert len(synced) == 2, "the line, and the folder in which the file is new"


def over_for(seconds: float, boot: str = "this") -> Intent:
    """An order whose call ended so long ago."""
    return replace(INTENT, attempt=f"{boot} {seconds}", ended=Instant(boot, 1000 - seconds))


@pytest.fixture
def steady(monkeypatch):
    """A clock that nobody sets, as this process reads it."""
    moments = [Instant("this", 1000.0)]
    monkeypatch.setattr(journal, "now", lambda: moments[-1])
    monkeypatch.setattr(journal, "_FIRST_READ", {})
    return moments


@pytest.mark.parametrize(
    ("ages_s", "scale", "left_s"),
    [((), 1, 0), ((0,), 1, 420), ((100, 30), 1, 390), ((500,), 1, 0), ((1,), 0.01, 320), ((-50,), 1, 420)],
)
def test_an_ordered_resource_may_be_missing_from_the_lists_for_seven_minutes(steady, ages_s, scale, left_s):
    assert orders.unsettled_s([over_for(age) for age in ages_s], SETTLED_S, scale) == pytest.approx(left_s)


@pytest.mark.parametrize("order", [INTENT, over_for(500, boot="another")])
def test_an_order_without_a_dated_end_counts_from_the_first_reading(steady, order):
    assert orders.unsettled_s([order], SETTLED_S, 1) == 420
    steady.append(Instant("this", 1100.0))
    assert orders.unsettled_s([order], SETTLED_S, 1) == pytest.approx(320)


def test_an_outcome_is_dated_by_the_clock_that_nobody_sets(book, steady):
    lost, made, _ = [book.intend(INTENT) for _ in range(3)]
    book.lost(lost.attempt)
    book.ordered(made.attempt, "101")
    assert [each.ended for each in book.unresolved()] == [steady[0], None]
    assert book.accepted("guest")["101"].ended == steady[0]


@pytest.mark.parametrize("is_lost", [True, False])
def test_looks_before_orders_share_a_fresh_list_unless_an_answer_was_lost(book, is_lost):
    owner, there = Owner("dev", MARK), []
    listed = SharedList(lambda _: list(there))
    account = SimpleNamespace(
        secrets=(),
        settled_s=SETTLED_S,
        clock_ahead_s=0.0,
        whoami=lambda: Identity("278444", "", "", ""),
        journal=lambda owner: Journal(owner.stack, owner.mark, "278444"),
        resources=lambda owner, kind, max_age_s: listed.under(owner, max_age_s),
        find=lambda *_, fresh: there[0],
        standing=lambda *_: None,
    )
    session = orders.Session(lambda: account, 1.0, threading.Event())
    session.stop.set()  # One look has to do.
    op = orders.Operation("urn:pulumi:dev::x::y::gpu-0", session, orders.Log(*[lambda _: None] * 3), limit_s=5)
    if is_lost:
        book.lost(book.intend(INTENT).attempt)
    listed.under(owner)
    there.append(Resource("guest", "101", "gpu-0", owner))
    found = orders.reconcile(op, account, OrderRequest("guest", owner, "gpu-0", None, hostname="gpu-0"))
    assert found == (there[0] if is_lost else None)


class Orders(SoftLayer):
    """An account that shows one order with this status, or none of that number."""

    clock_ahead_s = 0.0

    def __init__(self, status: str | None) -> None:
        self.api, self._status = self, status
        self.waiting: list[dict] = []
        self.order_list = SimpleNamespace(under=lambda owner, max_age_s: self.waiting)
        self.bills: list[dict] = []
        self.guest_list = SimpleNamespace(under=lambda owner, max_age_s: [])
        self.bill_list = SimpleNamespace(under=lambda owner, max_age_s: self.bills)

    def find(self, service: str, object_id: str, mask: str) -> dict[str, str] | None:
        return {"id": object_id, "status": self._status} if self._status else None


def accepted_without_a_name(book: Journal) -> Intent:
    book.receipt(book.intend(INTENT).attempt, "7001")
    (intent,) = book.unresolved()
    assert intent.order_id == "7001"
    return intent


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ("APPROVED", "is APPROVED"),
        ("COMPLETED", "is COMPLETED"),
        ("PENDING_APPROVAL", "is PENDING"),
        ("NEVER_HEARD_OF", "is NEVER_HEARD_OF"),
        (None, "cannot be read"),
    ],
)
def test_an_accepted_order_without_any_trace_is_never_called_not_arrived(book, status, shown):
    with pytest.raises(ProviderError, match=f"its order 7001 {shown}.*Nothing is ordered a second time"):
        sweep.mark_failed(Orders(status), book, accepted_without_a_name(book))
    assert len(book.unresolved()) == 1


@pytest.mark.parametrize("status", sorted(REFUSED))
def test_an_order_that_the_account_has_refused_since_made_nothing(book, status):
    sweep.mark_failed(Orders(status), book, accepted_without_a_name(book))
    assert book.unresolved() == []


@pytest.mark.parametrize(
    ("member", "row", "shown"),
    [
        ("bills", {"id": 9, "hostName": "gpu-0"}, "billing item 9 of gpu-0 is open"),
        ("waiting", {"id": 7, "items": [{"hostName": "gpu-0"}]}, "its order 7 is APPROVED"),
    ],
)
def test_a_refused_order_hides_no_other_sign_that_its_machine_was_ordered(book, member, row, shown):
    account = Orders(None)
    status = {"7001": {"id": 7001, "status": "DENIED"}, "7": {"id": 7, "status": "APPROVED"}, "9": {"id": 9}}
    account.find = lambda service, object_id, mask: status[object_id]
    getattr(account, member).append(row)
    with pytest.raises(ProviderError, match=shown):
        sweep.mark_failed(account, book, accepted_without_a_name(book))
    assert len(book.unresolved()) == 1


@pytest.mark.parametrize(
    ("ends", "is_over"), [(("2026-07-01",), True), (("2026-07-01", None), False), ((None,), False), ((), False)]
)
def test_an_accepted_order_is_over_once_all_that_it_made_is_cancelled(book, ends, is_over):
    account = Orders("APPROVED")
    account.bills = [{"id": 5, "cancellationDate": end, "orderItem": {"order": {"id": 7001}}} for end in ends]
    account.bills.append({"id": 6, "cancellationDate": "2026-07-01", "orderItem": {"order": {"id": 7002}}})
    with nullcontext() if is_over else pytest.raises(ProviderError, match="order 7001"):
        sweep.mark_failed(account, book, accepted_without_a_name(book))
    assert len(book.unresolved()) == (not is_over)


@pytest.mark.parametrize(
    ("status", "hours", "hostname", "stands"),
    [
        ("APPROVED", 0, "gpu-0", True),
        ("PENDING_APPROVAL", 0, "gpu-0", True),
        ("PENDING_APPROVAL", 0, "gpu-1", False),
        ("COMPLETED", 2, "gpu-0", True),
        ("COMPLETED", -0.5, "gpu-0", True),
        ("COMPLETED", -2, "gpu-0", False),
        ("DENIED", 0, "gpu-0", False),
    ],
)
def test_an_order_without_a_receipt_stands_while_a_later_namesake_does(book, status, hours, hostname, stands):
    account, intent = Orders(status), book.intend(INTENT)
    items = [{"hostName": hostname, "domainName": f"dev-{MARK}.microcluster"}]
    placed = datetime.fromisoformat(intent.at) + timedelta(hours=hours)
    account.waiting = [{"id": 7, "createDate": placed.isoformat(), "items": items}]
    with pytest.raises(ProviderError, match=f"its order 7 is {status}") if stands else nullcontext():
        sweep.mark_failed(account, book, intent)
    assert len(book.unresolved()) == stands


@pytest.mark.parametrize(("recorded_s", "now_s"), [(7200.0, 0.0), (0.0, 7200.0)])
def test_an_order_is_known_by_the_accounts_date_after_ours_was_corrected(recorded_s, now_s):
    asked = []
    market = SimpleNamespace(clock_ahead_s=now_s, standing=lambda owner, name, since, *_: asked.append(since))
    lost = replace(INTENT, at="2026-11-23T12:00:00+00:00", ahead_s=recorded_s)
    assert orders.evidence(market, Owner("dev", "1f3a9c42"), "gpu-0", [lost]) is None
    assert asked == [datetime(2026, 11, 23, 10, tzinfo=UTC)]
