"""A cancellation that the API refuses: waited for where work has to end first, told at once where nothing helps."""

import threading
import time
from types import SimpleNamespace

import pytest

from microcluster.accounts.shared import closing
from microcluster.accounts.shared.account import Identity, Pending, Resource
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.order import Log, Operation, Session
from microcluster.accounts.softlayer import views
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.core.home import Owner
from tests.unit.test_provider_guests import READY

OWNER = Owner("local", "1f3a9c42")
PRICE = {"id": 9, "hourlyFlag": True, "hourlyRecurringFee": "4.4"}
SCALE = 0.001
LIMIT_S = 90 * 60.0
GUEST = Resource("guest", "101", "gpu-0", OWNER)
KEY = Resource("key", "7", "", OWNER)


class Refusing(SoftLayer):
    """An account that shows one guest, and refuses each cancellation."""

    def __init__(self, text: str, code: str = "SoftLayer_Exception_Public", **guest) -> None:
        self.api, self.refusals = self, 0
        self.credentials = SimpleNamespace(username="somebody")
        self._guest = READY | {"billingItem": PRICE} | guest
        self._error = ApiError("calling Virtual_Guest::deleteObject of 101", code, text)

    def whoami(self) -> Identity:
        return Identity("1", "", "somebody", "https://api.test")

    def guest(self, *_):
        return self._guest

    def once(self, service: str, method: str, *_, **__):
        if method == "detachNetworkComponents":
            self._guest["primaryNetworkComponent"]["securityGroupBindings"].clear()
        if method == "deleteObject":
            self.refusals += 1
            raise self._error


def close(account: Refusing, sought: Resource = GUEST, limit_s: float = LIMIT_S, **fresh: float) -> None:
    session = Session(lambda: account, SCALE, threading.Event())
    op = Operation("urn:pulumi:local::x::y::gpu-0", session, Log(*[lambda _: None] * 3), limit_s)
    closing.close(op, account, sought, **fresh)


@pytest.mark.parametrize("text", ["Access Denied. ", "You do not have permission to cancel this server."])
def test_without_the_right_to_cancel_the_error_names_price_and_right(text):
    account = Refusing(text)
    with pytest.raises(
        ProviderError, match=r"guest 101 .*user somebody may not .*still billed at 4\.4 USD an hour.*-p SERVER_CANCEL"
    ):
        close(account)
    assert account.refusals == 1


@pytest.mark.parametrize(
    ("limit_s", "said"),
    [
        (LIMIT_S, "the API refuses it .This is not possible.*Ask the vendor's support"),
        (closing.REFUSED_FOR_S / 2, "did not accept the cancellation"),
    ],
    ids=["ends the wait long before its limit", "may be about work and is waited for"],
)
def test_a_refusal_although_nothing_is_done_on_the_guest(limit_s, said):
    account = Refusing("This is not possible.")
    with pytest.raises(ProviderError, match=said):
        close(account, limit_s=limit_s)
    assert account.refusals > 1


def test_a_guest_whose_cancellation_is_refused_keeps_its_firewall():
    worn = {"id": 4, "securityGroupBindings": [{"securityGroup": {"id": 8}}]}
    account = Refusing("Access Denied. ", primaryNetworkComponent=worn)
    with pytest.raises(ProviderError, match="still billed"):
        close(account)
    assert views.groups(account.guest(), "primaryNetworkComponent") == ["8"]


def test_a_guest_of_another_stack_is_not_cancelled_whatever_its_id():
    account = Refusing("", domain="p100-1f3a9c42.microcluster")
    with pytest.raises(ProviderError, match="cancelling guest 101 .*Nothing was done to it"):
        close(account)
    assert account.refusals == 0


class Lingering(Refusing):
    """An account that accepts the end of a key, and shows it for a while."""

    def __init__(self, shown: int) -> None:
        super().__init__("")
        self.looks_left = shown

    def find(self, kind: str, object_id: str, owner: Owner, **_) -> Resource | None:
        self.looks_left -= 1
        return Resource(kind, object_id, "the stack's", owner) if self.looks_left >= 0 else None

    def end(self, resource: Resource) -> None:
        self.refusals += 1
        if self._error.text:
            raise self._error


def test_a_key_that_cannot_be_deleted_ends_the_wait_early():
    account = Lingering(shown=100_000)
    account._error = ApiError(
        "calling Security_Ssh_Key::deleteObject of 7", "SoftLayer_Exception", "This is not possible."
    )
    with pytest.raises(ProviderError, match="cancelling key 7 .*the API refuses it .This is not possible"):
        close(account, KEY)


def test_a_free_resource_is_gone_once_unlisted_and_is_ended_once():
    account = Lingering(shown=3)
    close(account, KEY)
    assert account.looks_left < 0 and account.refusals == 1


class Fresh(Lingering):
    """An account that shows a group once, and takes what it does not show for too fresh while it may be."""

    def find(self, kind: str, object_id: str, owner: Owner, *, fresh: bool, **_) -> Resource | Pending | None:
        return super().find(kind, object_id, owner) or (Pending("made only now") if fresh else None)


def test_a_new_resource_is_gone_once_its_end_was_accepted_and_unlisted():
    sought, until = Resource("group", "7", "", OWNER), time.monotonic() + LIMIT_S
    close(Fresh(shown=1), sought, fresh_until=until)
    with pytest.raises(ProviderError, match="made only now"):
        close(Fresh(shown=0), sought, limit_s=600, fresh_until=until)
