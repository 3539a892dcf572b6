"""Permissions that the key's user needs before an order or an absence is believed, and properties that masks may name."""

import threading
from types import SimpleNamespace

import pytest
from SoftLayer.fixtures import SoftLayer_User_Permission_Department as vendors_list

from emulator.softlayer import users
from emulator.softlayer.queries import check as check_filter
from emulator.softlayer.queries import read_mask
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.softlayer import account, billing, ledger, views
from microcluster.accounts.softlayer import api as calls
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.core.home import Owner
from tests.unit.test_provider_guests import READY

ALL = [{"keyName": each} for each in calls.RIGHTS]
KEY = SimpleNamespace(username="somebody", api_key="k", endpoint="https://api.test")


class Api(calls.Api):
    """An account's calls, of which the one for the key's user is answered."""

    def __init__(self, **user) -> None:
        super().__init__(KEY, threading.Event())
        self.user = user

    def read(self, *_, **__) -> dict:
        return self.user


def without(*names: str) -> dict:
    return {"permissions": [each for each in ALL if each["keyName"] not in names]}


@pytest.mark.parametrize(
    "user",
    [
        {"permissions": ALL},
        {**without(calls.ALL_DEVICES), "hasFullVirtualGuestAccessFlag": True},
        {"isMasterUserFlag": True},
    ],
)
def test_a_user_with_all_rights_may_order_and_is_believed(user):
    Api(**user).check_to_order()
    assert SoftLayer(Api(**user)).hidden() is None


@pytest.mark.parametrize("name", calls.RIGHTS)
def test_a_missing_right_is_named_before_the_first_order_with_its_place(name):
    said = rf"nothing was ordered, as user somebody at https://api.test lacks '{calls.RIGHTS[name]}' \({name}\)\..*"
    with pytest.raises(ProviderError, match=rf"{said}slcli user edit-permissions somebody --enable -p {name}'"):
        Api(**without(name)).check_to_order()


def test_the_rights_have_the_vendors_key_names_and_console_names():
    listed = [each for department in vendors_list.getAllObjects for each in department["permissions"]]
    known = {each["keyName"]: each["name"] for each in listed}
    console = {name: calls.RIGHTS[name] for name in calls.RIGHTS if name != calls.ALL_DEVICES}
    assert {name: known.get(name) for name in console} == console
    assert users.PERMISSIONS.issubset(known)


def test_all_missing_rights_are_named_together():
    with pytest.raises(ProviderError, match="SERVER_ADD.*SERVER_CANCEL.*VIRTUAL_GUEST_VIEW.*ACCESS_ALL_GUEST"):
        Api().check_to_order()


@pytest.mark.parametrize("name", calls.SEEING)
def test_a_user_who_sees_not_all_guests_cannot_prove_one_gone(name):
    api = Api(**without(name))
    api.find, api.read_all = lambda *_: None, lambda *_, **__: []
    with pytest.raises(ProviderError, match="looking for guest 101: .*may run and be billed"):
        SoftLayer(api).find("guest", "101", Owner("local", "1f3a9c42"), fresh=False)


def test_a_user_who_lost_sight_of_charges_cannot_prove_a_guest_cancelled():
    api = Api(permissions=ALL)
    market = SoftLayer(api)
    market.check_sees_all("looking for guest 101")
    api.user = {}
    with pytest.raises(ProviderError, match="looking for guest 101: "):
        market.check_sees_all("looking for guest 101")


def test_guests_without_charges_are_believed_only_if_the_user_sees_charges():
    owner = Owner("local", "1f3a9c42")
    cancelled = {**READY, "billingItem": None}
    api = Api(**without(calls.BILLS))
    api.read_all = lambda *_, **__: [cancelled]
    with pytest.raises(ProviderError, match=f"looking for guest {READY['id']}: .*{calls.BILLS}"):
        SoftLayer(api).resources(owner, "guest")


def test_one_look_at_the_rights_serves_a_list_of_many_cancelled_guests():
    api = Api(permissions=ALL)
    asked = []
    api.read = lambda *call, **_: asked.append(call) or api.user
    api.read_all = lambda *_, **__: [{**READY, "id": number, "billingItem": None} for number in range(64)]
    assert len(SoftLayer(api).resources(Owner("local", "1f3a9c42"), "guest")) == 64
    assert asked == [("Account", "getCurrentUser")]


MASKS = {
    "guests": (views.GUEST_MASK, "Virtual_Guest"),
    "orders": (billing.ORDER_MASK, "Billing_Order"),
    "one order": (billing.STATUS_MASK, "Billing_Order"),
    "bills": (billing.BILL_MASK, "Billing_Item"),
    "charges": (billing.CHARGE_MASK, "Billing_Item"),
    "a VLAN": (ledger.VLAN_MASK, "Network_Vlan"),
    "keys": (views.KEY_MASK, "Security_Ssh_Key"),
    "groups": (views.GROUP_MASK, "Network_SecurityGroup"),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_names_only_what_its_type_has(name):
    mask, declared = MASKS[name]
    assert read_mask(mask, declared)


def test_a_filter_names_only_what_its_type_has():
    check_filter(account.OF_GUESTS, "Account")
