"""A user with few rights: what may not be seen is not found, and what may not be done is denied."""

import pytest

from emulator.softlayer import users
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import Fault
from tests.unit.emulated import Emulated, template

GUEST_ORDER = "SoftLayer_Container_Product_Order_Virtual_Guest"


def limited(tmp_path, *missing: str):
    """An account with one guest, and a function that calls as a user who lacks some rights."""
    rights = tuple(sorted(users.PERMISSIONS - set(missing)))
    emulated = Emulated(tmp_path, restricted_user="limited", restricted_permissions=rights)
    guest_id = emulated.ready()
    who = Credentials("limited", emulated.account.settings.api_key)

    def call(service: str, method: str, *arguments, identifier=None, mask=None):
        name = f"SoftLayer_{service}"
        return emulated.api.answer(Call(name, method, arguments, identifier, mask, credentials=who)).value

    return emulated, guest_id, call


@pytest.mark.parametrize("missing", [users.ALL_GUESTS, users.VIEW])
def test_a_device_hidden_from_a_user_is_unlisted_and_not_found(tmp_path, missing):
    emulated, guest_id, call = limited(tmp_path, missing)
    assert call("Account", "getVirtualGuests") == []
    for method in ("getObject", "deleteObject"):
        with pytest.raises(Fault, match="ObjectNotFound"):
            call("Virtual_Guest", method, identifier=guest_id)
    assert call("Account", "getAllTopLevelBillingItems")
    ordered = call("Virtual_Guest", "createObject", template("gpu-1"))["id"]
    with pytest.raises(Fault, match="ObjectNotFound"):
        call("Virtual_Guest", "getObject", identifier=ordered)
    assert len(emulated.call("Account", "getVirtualGuests")) == 2


@pytest.mark.parametrize(
    ("missing", "service", "method", "arguments"),
    [
        ("INSTANCE_UPGRADE", "Virtual_Guest", "createObject", (template("gpu-1"),)),
        ("PUBLIC_NETWORK_COMPUTE", "Virtual_Guest", "createObject", (template("gpu-1"),)),
        ("INSTANCE_UPGRADE", "Product_Order", "placeOrder", ({"complexType": GUEST_ORDER},)),
        ("CUSTOMER_SSH_KEY_MANAGEMENT", "Security_Ssh_Key", "createObject", ({"key": "ssh-ed25519 AAAA"},)),
        ("MANAGE_SECURITY_GROUPS", "Network_SecurityGroup", "createObject", ({"name": "a"},)),
        ("PORT_CONTROL", "Virtual_Guest", "setPublicNetworkInterfaceSpeed", (1000,)),
        ("HOSTNAME_EDIT", "Virtual_Guest", "editObject", ({"notes": "a"},)),
        ("REMOTE_MANAGEMENT", "Virtual_Guest", "rebootDefault", ()),
        ("SERVER_ADD", "Virtual_Guest", "createObject", (template("gpu-1"),)),
        ("SERVER_CANCEL", "Virtual_Guest", "deleteObject", ()),
    ],
)
def test_each_kind_of_change_is_a_right_of_its_own(tmp_path, missing, service, method, arguments):
    emulated, guest_id, call = limited(tmp_path, missing)
    before = dict(emulated.account.store.guests)
    with pytest.raises(Fault, match="Access Denied"):
        call(service, method, *arguments, identifier=guest_id if service == "Virtual_Guest" else None)
    assert dict(emulated.account.store.guests) == before
