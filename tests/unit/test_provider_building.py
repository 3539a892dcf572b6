"""A guest on its way to ready: what is waited for, and what ends the wait."""

import threading
from types import SimpleNamespace

import pytest

from microcluster.accounts.shared import readiness
from microcluster.accounts.shared.account import Identity, Pending, Resource
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.journal import Intent, Journal
from microcluster.accounts.shared.order import Operation, Session
from microcluster.accounts.shared.readiness import GoneError, Readiness
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.api import LISTS_LAG_S, LONGEST_ORDER_S
from microcluster.accounts.softlayer.billing import open_without_guest
from microcluster.core.home import Owner
from tests.unit.test_provider_guests import READY, transaction

SETTLED_S = LISTS_LAG_S + LONGEST_ORDER_S

UNBILLED = {key: value for key, value in READY.items() if key not in ("billingItem", "provisionDate")}
OWNER = Owner("local", "1f3a9c42")
ITEMS = [{"hostName": "gpu-0", "domainName": "local-1f3a9c42.microcluster"}]


OPEN, CLOSED = {"id": 5, "cancellationDate": ""}, {"id": 5, "cancellationDate": "2026"}


class Shown(SoftLayer):
    """An account that shows one guest, or none, and its orders."""

    def __init__(self, guest=None, *listed) -> None:
        self.seen, self.listed, self.secrets = guest, list(listed), ()
        self.api = SimpleNamespace(lacking=lambda needed: None)
        self.order_list = SimpleNamespace(under=lambda *_: self.listed)
        self.guest_list = SimpleNamespace(under=lambda *_: [])
        self.items: list[dict] = []
        self.bill_list = SimpleNamespace(under=lambda *_: self.items)

    def whoami(self) -> Identity:
        return Identity("278444", "", "somebody", "https://api.test")

    def guest(self, *_):
        return self.seen


@pytest.fixture(autouse=True)
def book(tmp_path, monkeypatch) -> Journal:
    """A journal that knows guest 101 since just now."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))
    journal = Journal(OWNER.stack, OWNER.mark, "278444")
    intent = journal.intend(Intent("gpu-0", "guest", "gpu-0"))
    journal.ordered(intent.attempt, "101")
    return journal


@pytest.fixture
def clock(monkeypatch):
    moment = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(readiness.time, "monotonic", lambda: moment.now)
    return moment


def looking_at(account: Shown) -> Readiness:
    session = Session(lambda: account, 1.0, threading.Event())
    op = Operation(f"urn:pulumi:{OWNER.stack}::x::y::gpu-0", session, SimpleNamespace(), 9000)
    return Readiness(op, account, Resource("guest", "101", "gpu-0", OWNER))


def order(status: str, number: int = 7) -> dict:
    return {"id": number, "status": status, "items": ITEMS}


@pytest.mark.parametrize("status", ["PENDING_APPROVAL", "PENDING_AUTO_APPROVAL"])
def test_an_order_that_waits_for_approval_is_waited_for_and_named(clock, status):
    watched = looking_at(Shown(UNBILLED, order("APPROVED", 3), order(status)))
    for _ in range(3):
        state = watched.look()
        assert isinstance(state, Pending)
        assert state.detail.startswith(f"its order 7 is {status}, which a person")
        clock.now += readiness.IDLE_S


@pytest.mark.parametrize("status", ["CANCELLED", "REFUSED", "DENIED"])
def test_a_refused_order_ends_the_wait_and_says_so(clock, status):
    with pytest.raises(ProviderError, match=f"will not be built: its order 7 is {status}"):
        looking_at(Shown(UNBILLED, order(status))).look()


def test_an_order_refused_during_the_wait_is_reported_without_its_guest(clock):
    account = Shown(UNBILLED, order("PENDING_APPROVAL"))
    watched = looking_at(account)
    watched.look()
    account.seen, account.listed = None, [order("CANCELLED")]
    with pytest.raises(ProviderError, match=r"guest 101 \(.*\) will not be built: its order 7 is CANCELLED"):
        watched.look()


def test_an_approved_order_without_progress_ends_in_a_sentence_that_names_it(clock):
    item = {"orderItem": {"order": order("APPROVED")}}
    account = Shown(READY | {"provisionDate": "", "billingItem": item} | transaction("POWER_ON"))
    watched = looking_at(account)
    clock.now += readiness.IDLE_S - 10
    watched.look()
    account.seen = READY | {"provisionDate": "", "billingItem": item}
    clock.now += 60
    assert isinstance(watched.look(), Pending), "a gap between two transactions is no end"
    clock.now += readiness.IDLE_S
    with pytest.raises(ProviderError, match="its order 7 is APPROVED, and nothing has been done on it for 30 minutes"):
        watched.look()


@pytest.mark.parametrize(
    ("is_fresh", "items", "said"),
    [
        (True, [], "does not know it any more, and nothing is billed"),
        (False, [OPEN], "billing item 5 is open. It may be billed"),
    ],
    ids=["as long as lists may lag", "and is never called gone while its billing item is open"],
)
def test_a_guest_that_is_not_shown_is_waited_for(clock, book, is_fresh, items, said):
    account = Shown()
    account.items = items
    if not is_fresh:
        book.path.unlink()
    watched = looking_at(account)
    watched.look()
    clock.now += SETTLED_S - 10
    assert isinstance(watched.look(), Pending)
    clock.now += 20
    with pytest.raises(ProviderError, match=said) as told:
        watched.look()
    assert isinstance(told.value, GoneError) == (not items)


def test_a_guest_that_is_neither_shown_nor_fresh_nor_billed_is_gone(clock, book):
    book.path.unlink()
    with pytest.raises(GoneError, match="does not know it any more, and nothing is billed"):
        looking_at(Shown()).look()


def test_while_an_order_waits_for_approval_its_missing_guest_is_not_gone():
    account = Shown(None, order("PENDING_APPROVAL"))
    account.listed[0]["items"] = [*ITEMS, {"hostName": "", "domainName": ITEMS[0]["domainName"]}]
    state = account.find("guest", "101", OWNER, fresh=False)
    assert "its order 7 is PENDING_APPROVAL" in state.detail
    account.guest_list = SimpleNamespace(under=lambda *_: [{"hostname": "gpu-0"}])  # The one that is waited for.
    assert account.find("guest", "101", OWNER, fresh=False) is None


def test_a_guest_that_is_built_and_has_its_addresses_is_ready(clock):
    assert isinstance(looking_at(Shown(READY)).look(), Resource)


@pytest.mark.parametrize("gone", [transaction("RECLAIM_NETWORK") | {"billingItem": None}, {"billingItem": None}])
def test_a_guest_that_somebody_cancelled_ends_the_wait_at_once(clock, gone):
    with pytest.raises(ProviderError, match="was cancelled by somebody else"):
        looking_at(Shown(READY | gone)).look()


def test_only_a_guest_that_its_list_calls_ready_is_read_itself(clock):
    account, listed = Shown(), [READY | transaction("POWER_ON"), READY]
    cancelled = READY | {"billingItem": None}
    account.guest = lambda guest_id, owner, max_age_s: listed.pop(0) if max_age_s else cancelled
    watched = looking_at(account)
    assert "in transaction POWER_ON" in watched.look().detail
    with pytest.raises(ProviderError, match="was cancelled by somebody else"):
        watched.look()


def test_of_several_orders_for_one_name_the_newest_counts(clock):
    listed = [order("CANCELLED", 9), order("PENDING_APPROVAL", 11), order("APPROVED", 10)]
    state = looking_at(Shown(UNBILLED, *listed)).look()
    assert "its order 11 is PENDING_APPROVAL" in state.detail


OTHER = {"id": 102, "billingItem": {"id": 5}}


@pytest.mark.parametrize(
    ("items", "listed", "unclaimed"),
    [
        ([], [], []),
        ([OPEN], [], ["5"]),
        ([CLOSED], [], []),
        ([CLOSED, OPEN | {"id": 6}], [OTHER], ["6"]),
        ([OPEN], [OTHER], []),
        ([OPEN], [{"id": 102}], ["5"]),
    ],
)
def test_an_open_billing_item_without_a_guest_is_reported_as_unclaimed(items, listed, unclaimed):
    assert open_without_guest(items, listed) == unclaimed
