"""Volumes of the emulated account through the official client's managers, unmodified."""

from __future__ import annotations

import pytest
import SoftLayer

from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker
from tests.integration.until import until

ENDURANCE = {"storage_type": "endurance", "location": "lon06", "size": 500, "os_type": "LINUX", "tier_level": 4}
DONE = "PROVISION_COMPLETED"
VOLUME = "mask[id,volumeStatus,activeTransactionCount,billingItem[id,cancellationDate,hourlyFlag]]"


@pytest.fixture
def client(account_emulator, onlooker):
    return onlooker.client


@pytest.fixture
def block(client):
    manager = SoftLayer.BlockStorageManager(client)
    until(lambda: not list(manager.list_block_volumes()))
    return manager


def is_ready(manager, volume_id):
    found = manager.get_block_volume_details(volume_id, mask=VOLUME)
    return found["volumeStatus"] == DONE and not found["activeTransactionCount"]


def ordered(block, **changes):
    """Order a volume and return its id once it is there."""
    receipt = block.order_block_volume(**{**ENDURANCE, "hourly_billing_flag": True, **changes})
    (volume,) = block.list_block_volumes(order=receipt["placedOrder"]["id"])
    until(lambda: is_ready(block, volume["id"]))
    return volume["id"]


def test_the_receipt_of_a_volume_names_its_order_and_no_volume(block):
    receipt = block.order_block_volume(**ENDURANCE, hourly_billing_flag=True)
    assert receipt["placedOrder"]["id"] == receipt["orderId"]
    assert [each["description"] for each in receipt["placedOrder"]["items"]][:2] == [
        "Storage as a Service",
        "Block Storage",
    ]
    assert "id" not in receipt["orderDetails"]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, ("ENDURANCE_BLOCK_STORAGE", "WRITEHEAVY_TIER", "2000")),
        ({"tier_level": 0.25}, ("ENDURANCE_BLOCK_STORAGE", "LOW_INTENSITY_TIER", "125")),
        (
            {"storage_type": "performance", "iops": 3000, "tier_level": None},
            ("PERFORMANCE_BLOCK_STORAGE", None, "3000"),
        ),
    ],
)
def test_a_volume_is_what_was_ordered(block, changes, shown):
    detail = block.get_block_volume_details(ordered(block, **changes))
    found = (detail["storageType"]["keyName"], detail.get("storageTierLevel"), detail["provisionedIops"])
    assert (found, detail["capacityGb"]) == (shown, 500)
    assert detail["serviceResource"]["datacenter"]["name"] == "lon06"


@pytest.mark.parametrize(
    "changes",
    [{"size": 12001}, {"size": 19}, {"storage_type": "performance", "iops": 50000, "tier_level": None}],
)
def test_the_client_finds_no_price_for_a_size_that_is_not_sold(block, changes):
    with pytest.raises(ValueError, match="Could not find price"):
        block.order_block_volume(**{**ENDURANCE, **changes})


def test_a_volume_is_listed_at_once_and_ready_later(emulator_with):
    block = SoftLayer.BlockStorageManager(Onlooker(emulator_with(clock_step_s=10.0).config_file).client)
    receipt = block.order_block_volume(**ENDURANCE, hourly_billing_flag=True)
    (volume,) = block.list_block_volumes(order=receipt["orderId"], mask=VOLUME)
    assert volume["activeTransactionCount"] == 1
    assert volume["volumeStatus"] != DONE
    until(lambda: is_ready(block, volume["id"]))


def test_a_guest_is_authorised_with_an_iqn_and_a_credential_and_loses_them_again(block, onlooker):
    volume, guest = ordered(block), onlooker.order("gpu-0")
    block.authorize_host_to_volume(volume, virtual_guest_ids=[guest])
    (allowed,) = block.get_block_volume_access_list(volume)["allowedVirtualGuests"]
    assert str(allowed["id"]) == guest
    assert allowed["allowedHost"]["name"].startswith("iqn.")
    assert len(allowed["allowedHost"]["credential"]["password"]) == 16
    attached = onlooker.client.call("Virtual_Guest", "getAttachedNetworkStorages", "ISCSI", id=guest)
    assert [each["id"] for each in attached] == [volume]
    until(lambda: not refused(lambda: block.deauthorize_host_to_volume(volume, virtual_guest_ids=[guest])))
    assert block.get_block_volume_access_list(volume)["allowedVirtualGuests"] == []


def refused(act):
    try:
        act()
    except SoftLayer.SoftLayerAPIError as error:
        assert "MassAccessControlModification" in error.faultCode
        return True
    return False


def test_a_second_change_of_access_is_refused_while_the_first_is_running(emulator_with):
    emulator = emulator_with(access_change_s=100_000.0)
    onlooker = Onlooker(emulator.config_file)
    block = SoftLayer.BlockStorageManager(onlooker.client)
    volume, guest = ordered(block), onlooker.order("gpu-0")
    block.authorize_host_to_volume(volume, virtual_guest_ids=[guest])
    assert refused(lambda: block.deauthorize_host_to_volume(volume, virtual_guest_ids=[guest]))


def test_an_hourly_volume_ends_at_once_even_if_that_is_not_asked_for(block, onlooker):
    volume = ordered(block)
    item = onlooker.client.call("Network_Storage", "getObject", id=volume, mask=VOLUME)["billingItem"]["id"]
    block.cancel_block_volume(volume, immediate=False)
    closed = onlooker.client.call("Billing_Item", "getObject", id=item, mask="mask[id,cancellationDate]")
    assert closed["cancellationDate"]
    until(lambda: not list(block.list_block_volumes()))


def test_a_monthly_volume_stays_listed_and_billed_until_its_anniversary(block, emulator_with):
    emulator: AccountEmulator = emulator_with(clock_rate=60)
    client = Onlooker(emulator.config_file).client
    block = SoftLayer.BlockStorageManager(client)
    volume = ordered(block, hourly_billing_flag=False)
    assert block.cancel_block_volume(volume, immediate=False)
    found = client.call("Network_Storage", "getObject", id=volume, mask=VOLUME)
    assert found["billingItem"]["cancellationDate"]
    assert emulator.status()["open_billing_items"] == 1
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="pending cancellation"):
        block.cancel_block_volume(volume, immediate=True)


def test_a_monthly_volume_ends_at_once_if_that_is_asked_for(block, account_emulator):
    before = account_emulator.status()["open_billing_items"]
    volume = ordered(block, hourly_billing_flag=False)
    block.cancel_block_volume(volume, immediate=True)
    assert account_emulator.status()["open_billing_items"] == before


def test_a_volume_may_have_another_id_once_it_is_provisioned(emulator_with):
    emulator = emulator_with(volume_id_changes=True, clock_step_s=10.0)
    block = SoftLayer.BlockStorageManager(Onlooker(emulator.config_file).client)
    order = block.order_block_volume(**ENDURANCE)["orderId"]
    (first,) = block.list_block_volumes(order=order)
    until(lambda: [each["id"] for each in block.list_block_volumes(order=order)] != [first["id"]])
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Unable to find object"):
        block.get_block_volume_details(first["id"])


def test_notes_are_kept_and_nothing_else_can_be_edited(block, client):
    volume = ordered(block)
    block.volume_set_note(volume, "mine")
    assert block.get_block_volume_details(volume)["notes"] == "mine"
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="cannot be edited"):
        client.call("Network_Storage", "editObject", {"capacityGb": 1}, id=volume)


def test_a_file_volume_is_listed_among_the_nas_storage_with_its_mount_address(client):
    files = SoftLayer.FileStorageManager(client)
    receipt = files.order_file_volume("endurance", "lon06", 100, tier_level=2, hourly_billing_flag=True)
    (volume,) = files.list_file_volumes(order=receipt["orderId"])
    assert "/data01" in files.get_file_volume_details(volume["id"])["fileNetworkMountAddress"]


def test_the_account_says_how_many_volumes_it_may_have(block):
    (limit,) = block.get_volume_count_limits()
    assert (limit["maximumAvailableCount"], limit["provisionedCount"]) == (700, 0)
