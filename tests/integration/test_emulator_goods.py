"""VLANs, portable volumes and images of the emulated account through the official client, unmodified."""

from __future__ import annotations

import pytest
import SoftLayer

from tests.integration.until import until

VLAN_ORDER = "SoftLayer_Container_Product_Order_Network_Vlan"
DISK_ORDER = "SoftLayer_Container_Product_Order_Virtual_Disk_Image"
PRIVATE_IMAGE, PV_IMAGE, PUBLIC_IMAGE, FOREIGN_IMAGE = 2263543, 2263001, 2263700, 2263900


@pytest.fixture
def client(onlooker):
    return onlooker.client


@pytest.fixture
def vlan(client):
    """An ordered private VLAN, as the official command line orders it."""
    manager = SoftLayer.OrderingManager(client)
    extras = {"name": "training"}
    receipt = manager.place_order("NETWORK_VLAN", "lon06", ["PRIVATE_NETWORK_VLAN"], VLAN_ORDER, extras=extras)
    assert receipt["orderDetails"]["orderContainers"][0]["name"] == "training"
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


@pytest.fixture
def disk(client):
    """A portable volume, ordered on its own."""
    package = client.call("Product_Package", "getAllObjects", filter=by_key("ADDITIONAL_SERVICES_PORTABLE_STORAGE"))
    (price,) = [
        each["prices"][0]
        for each in client.call("Product_Package", "getItems", id=package[0]["id"], mask="mask[capacity,prices]")
        if each["capacity"] == "500"
    ]
    container = {
        "complexType": DISK_ORDER,
        "packageId": package[0]["id"],
        "location": "lon06",
        "prices": [{"id": price["id"]}],
        "diskDescription": "corpus",
        "useHourlyPricing": True,
    }
    client.call("Product_Order", "placeOrder", container)
    mask = "mask[id,capacity,description,billingItem[id],blockDevices[guest[id]]]"
    (found,) = client.call("Account", "getPortableStorageVolumes", mask=mask)
    return found


def by_key(name):
    return {"keyName": {"operation": name}}


def attached_guest(client, onlooker, disk):
    guest = onlooker.order("gpu-0", blockDevices=[])
    until(lambda: client.call("Virtual_Guest", "getObject", id=guest).get("provisionDate"))
    SoftLayer.VSManager(client).attach_portable_storage(guest, disk["id"])
    return guest


def test_a_portable_volume_outlives_its_guest_and_goes_on_costing(client, onlooker, disk, account_emulator):
    guest = attached_guest(client, onlooker, disk)
    (shown,) = client.call("Account", "getPortableStorageVolumes", mask="mask[id,blockDevices[guest[id]]]")
    assert shown["blockDevices"][0]["guest"]["id"]
    cancelled(client, guest)
    (orphan,) = client.call("Account", "getPortableStorageVolumes", mask="mask[id,blockDevices,billingItem[id]]")
    assert (orphan["blockDevices"], orphan["billingItem"]["id"]) == ([], disk["billingItem"]["id"])
    assert account_emulator.status()["open_billing_items"] == 1


def test_a_portable_volume_is_on_one_guest_at_a_time_and_cannot_be_cancelled_there(client, onlooker, disk):
    guest = attached_guest(client, onlooker, disk)
    until(lambda: not client.call("Virtual_Guest", "getActiveTransactions", id=guest))
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="is attached to virtual guest"):
        client.call("Virtual_Guest", "attachDiskImage", disk["id"], id=guest)
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="is attached to virtual guest"):
        client.call("Billing_Item", "cancelItem", True, True, "", "", id=disk["billingItem"]["id"])
    client.call("Virtual_Guest", "detachDiskImage", disk["id"], id=guest)
    assert (
        client.call("Virtual_Disk_Image", "getObject", id=disk["id"], mask="mask[blockDevices]")["blockDevices"] == []
    )


def test_a_disk_that_was_ordered_with_its_guest_goes_with_it(client, onlooker):
    guest = onlooker.order("gpu-0")
    (disk,) = client.call("Account", "getPortableStorageVolumes", mask="mask[id,capacity,billingItem]")
    assert (disk["capacity"], disk.get("billingItem")) == (2000, None)
    cancelled(client, guest)
    assert client.call("Account", "getPortableStorageVolumes") == []


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
