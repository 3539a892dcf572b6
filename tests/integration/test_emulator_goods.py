"""VLANs and images of the emulated account through the official client, unmodified."""

import pytest
import SoftLayer

from tests.integration.until import until

PRIVATE_IMAGE, PV_IMAGE, PUBLIC_IMAGE, FOREIGN_IMAGE = 2263543, 2263001, 2263700, 2263900


@pytest.fixture
def client(onlooker):
    return onlooker.client


@pytest.fixture
def vlan(client, account_emulator):
    """A private VLAN that a person ordered in the addon_orders."""
    account_emulator.order_in_portal("vlan", text="training", datacenter="lon06")
    (found,) = SoftLayer.NetworkManager(client).list_vlans(name="training", mask="mask[id,name,billingItem[id]]")
    return found


def cancelled(client, guest):
    """Cancel a guest as soon as it can be, and wait until it is gone."""
    until(lambda: not client.call("Virtual_Guest", "getActiveTransactions", id=guest))
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
    (reason,) = client.call("Network_Vlan", "getCancelFailureReasons", id=vlan["id"])
    assert guest in reason
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="is on VLAN"):
        client.call("Billing_Item", "cancelItem", True, True, "", "", id=vlan["billingItem"]["id"])


def test_an_empty_vlan_is_cancelled_and_gone(client, vlan):
    assert client.call("Billing_Item", "cancelItem", True, True, "", "", id=vlan["billingItem"]["id"])
    assert client.call("Account", "getNetworkVlans") == []


def test_an_automatic_vlan_has_no_billing_item(client, onlooker):
    onlooker.order("gpu-0")
    vlans = client.call("Account", "getNetworkVlans", mask="mask[id,billingItem[id]]")
    assert vlans
    assert not any(each.get("billingItem") for each in vlans)


def test_a_vlan_is_renamed_and_tagged_and_its_name_is_short(client, vlan):
    manager = SoftLayer.NetworkManager(client)
    manager.edit(vlan["id"], name="other")
    manager.set_tags("one,two", vlan["id"])
    found = manager.get_vlan(vlan["id"], mask="mask[name,tagReferences[tag[name]]]")
    assert (found["name"], [each["tag"]["name"] for each in found["tagReferences"]]) == ("other", ["one", "two"])
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="20 characters"):
        manager.edit(vlan["id"], name="x" * 21)


def test_images_are_listed_by_their_owner_and_read_by_id_and_guid(client):
    images = SoftLayer.ImageManager(client)
    assert {each["id"] for each in images.list_private_images()} == {PRIVATE_IMAGE, PV_IMAGE}
    assert [each["id"] for each in images.list_public_images()] == [PUBLIC_IMAGE]
    guid = images.get_image(PRIVATE_IMAGE)["globalIdentifier"]
    group = "Virtual_Guest_Block_Device_Template_Group"
    assert client.call(group, "getObject", id=guid)["id"] == PRIVATE_IMAGE


@pytest.mark.parametrize(("image", "cloud_init", "mode"), [(PRIVATE_IMAGE, True, "HVM"), (PV_IMAGE, False, "PV")])
def test_an_image_says_how_it_boots(client, image, cloud_init, mode):
    group = "Virtual_Guest_Block_Device_Template_Group"
    assert client.call(group, "isCloudInit", id=image) is cloud_init
    assert client.call(group, "getBootMode", id=image) == mode


def test_the_image_of_another_account_is_neither_shown_nor_ordered(client, onlooker):
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        SoftLayer.ImageManager(client).get_image(FOREIGN_IMAGE)
    image = {"blockDeviceTemplateGroup": {"globalIdentifier": "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b004"}}
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        onlooker.order("gpu-0", operatingSystemReferenceCode=None, blockDevices=None, **image)
