"""VLANs and images of the emulated account through the official client, unmodified."""

import pytest
import SoftLayer

from tests.integration.until import until

PRIVATE_IMAGE, PV_IMAGE, FOREIGN_IMAGE = 2263543, 2263001, 2263900
IMAGES = "Virtual_Guest_Block_Device_Template_Group"


@pytest.fixture
def client(onlooker):
    return onlooker.client


def vlan_of(client, guest):
    shown = client.call("Virtual_Guest", "getObject", id=guest, mask="primaryBackendNetworkComponent[networkVlan[id]]")
    return shown["primaryBackendNetworkComponent"]["networkVlan"]["id"]


def test_an_ordered_vlan_takes_the_guest_that_names_it_is_kept_by_it_and_stays_without_it(
    client, account_emulator, onlooker
):
    vlan = account_emulator.order_in_portal("vlan", text="training", datacenter="lon06")
    guest = onlooker.order("gpu-0", primaryBackendNetworkComponent={"networkVlan": {"id": vlan["id"]}})
    assert vlan_of(client, guest) == vlan["id"]
    with pytest.raises(SoftLayer.SoftLayerAPIError, match=f"{guest} .*is on VLAN"):
        client.call("Billing_Item", "cancelItem", True, True, "", "", id=vlan["billing_item"])
    until(lambda: client.call("Virtual_Guest", "getObject", id=guest)["provisionDate"])
    client.call("Virtual_Guest", "deleteObject", id=guest)
    until(lambda: not client.call("Account", "getVirtualGuests"))
    assert client.call("Network_Vlan", "getObject", id=vlan["id"])["name"] == "training"


def test_an_automatic_vlan_goes_with_its_last_guest(client, onlooker):
    vlan = vlan_of(client, onlooker.order("gpu-0"))
    onlooker.clean()
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Unable to find"):
        client.call("Network_Vlan", "getObject", id=vlan)


def test_an_image_says_whether_its_guests_read_user_data_and_another_accounts_is_not_shown(client):
    assert client.call(IMAGES, "getObject", id=PRIVATE_IMAGE)["globalIdentifier"]
    assert [client.call(IMAGES, "isCloudInit", id=each) for each in (PRIVATE_IMAGE, PV_IMAGE)] == [True, False]
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        client.call(IMAGES, "getObject", id=FOREIGN_IMAGE)
