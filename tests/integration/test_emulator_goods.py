"""VLANs and images of the emulated account through the official client, unmodified."""

import pytest
import SoftLayer

from tests.integration.until import until

PRIVATE_IMAGE, PV_IMAGE, FOREIGN_IMAGE = 2263543, 2263001, 2263900
IMAGES = "Virtual_Guest_Block_Device_Template_Group"


@pytest.fixture
def client(onlooker):
    return onlooker.client


@pytest.fixture
def vlan(client, account_emulator):
    """A private VLAN that a person ordered in the portal."""
    account_emulator.order_in_portal("vlan", text="training", datacenter="lon06")
    (found,) = client.call("Account", "getNetworkVlans", mask="mask[id,name,billingItem[id]]")
    return found


def cancelled(client, guest):
    """Cancel a guest as soon as it can be, and wait until it is gone."""
    until(
        lambda: (
            "activeTransaction" not in client.call("Virtual_Guest", "getObject", id=guest, mask="id,activeTransaction")
        )
    )
    client.call("Virtual_Guest", "deleteObject", id=guest)
    until(lambda: not client.call("Account", "getVirtualGuests"))


def placed_on(vlan_id):
    return {"primaryBackendNetworkComponent": {"networkVlan": {"id": vlan_id}}}


def test_an_ordered_vlan_has_a_billing_item_and_stays_without_guests(client, vlan, onlooker):
    guest = onlooker.order("gpu-0", **placed_on(vlan["id"]))
    cancelled(client, guest)
    assert [each["id"] for each in client.call("Account", "getNetworkVlans")] == [vlan["id"]]
    assert vlan["billingItem"]["id"]


def test_a_guest_lands_on_the_vlan_that_it_names_and_keeps_it_from_being_cancelled(client, vlan, onlooker):
    guest = onlooker.order("gpu-0", **placed_on(vlan["id"]))
    shown = client.call("Virtual_Guest", "getObject", id=guest, mask="primaryBackendNetworkComponent[networkVlan[id]]")
    assert shown["primaryBackendNetworkComponent"]["networkVlan"]["id"] == vlan["id"]
    with pytest.raises(SoftLayer.SoftLayerAPIError, match=f"{guest} .*is on VLAN"):
        client.call("Billing_Item", "cancelItem", True, True, "", "", id=vlan["billingItem"]["id"])


def test_an_automatic_vlan_has_no_billing_item(client, onlooker):
    onlooker.order("gpu-0")
    vlans = client.call("Account", "getNetworkVlans", mask="mask[id,billingItem[id]]")
    assert vlans
    assert not any(each.get("billingItem") for each in vlans)


def test_an_image_is_read_by_id_and_guid_and_says_whether_its_guests_read_user_data(client):
    guid = client.call(IMAGES, "getObject", id=PRIVATE_IMAGE)["globalIdentifier"]
    assert client.call(IMAGES, "getObject", id=guid)["id"] == PRIVATE_IMAGE
    assert [client.call(IMAGES, "isCloudInit", id=each) for each in (PRIVATE_IMAGE, PV_IMAGE)] == [True, False]


def test_the_image_of_another_account_is_neither_shown_nor_ordered(client, onlooker):
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        client.call(IMAGES, "getObject", id=FOREIGN_IMAGE)
    image = {"blockDeviceTemplateGroup": {"globalIdentifier": "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b004"}}
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        onlooker.order("gpu-0", operatingSystemReferenceCode=None, blockDevices=None, **image)
