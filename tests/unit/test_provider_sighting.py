"""What it means that the account does not show a guest."""

import threading
from types import SimpleNamespace

import pytest

from core.home import Owner
from providers.rental.account import Pending
from providers.rental.errors import ProviderError
from providers.softlayer.account import SoftLayer
from providers.softlayer.api import Api

OWNER = Owner("local", "1f3a9c42")
NAME = {"hostName": "gpu-0", "domainName": "local-1f3a9c42.microcluster"}
SEES_ALL = {
    "hasFullVirtualGuestAccessFlag": True,
    "permissions": [{"keyName": "VIRTUAL_GUEST_VIEW"}, {"keyName": "ACCOUNT_SUMMARY_VIEW"}],
}
KEY = SimpleNamespace(username="somebody", endpoint="https://api.test")


class Unshown(SoftLayer):
    """An account in which nothing is billed and guest 101 is not shown."""

    def __init__(self, user=SEES_ALL, orders=(), guests=()) -> None:
        def listed(rows) -> SimpleNamespace:
            return SimpleNamespace(under=lambda *_: list(rows))

        self.bill_list, self.order_list, self.guest_list = listed([]), listed(orders), listed(guests)
        self.api = Api(KEY, threading.Event())
        self.api.find, self.api.read = lambda *_: None, lambda *_, **__: user


def found(*shown, **more):
    return Unshown(*shown, **more).find("guest", "101", OWNER, fresh=False)


def waiting(**name: str) -> dict:
    return {"id": 7, "status": "PENDING_APPROVAL", "items": [NAME | name]}


def test_a_guest_of_which_nothing_is_left_is_gone_for_a_user_who_sees_all_guests():
    assert found() is None


@pytest.mark.parametrize("user", [{}, {"permissions": SEES_ALL["permissions"]}])
def test_for_a_user_who_does_not_see_all_guests_none_is_ever_gone(user):
    with pytest.raises(ProviderError, match="looking for guest 101: .*may run and be billed"):
        found(user)


def test_while_an_order_waits_for_approval_and_shows_no_guest_none_is_gone():
    state = found(orders=[waiting()])
    assert isinstance(state, Pending)
    assert "its order 7 is PENDING_APPROVAL" in state.detail


def test_an_order_that_waits_with_its_guest_says_nothing_about_another_one():
    there = {"hostname": "gpu-1", "domain": NAME["domainName"]}
    order = waiting(hostName="gpu-1")
    order["items"].append({"hostName": "", "domainName": NAME["domainName"]})
    assert found(orders=[order], guests=[there]) is None
