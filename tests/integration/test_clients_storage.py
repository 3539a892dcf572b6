"""The official client orders, lends, shows and cancels volumes of the emulated account."""

from __future__ import annotations

from typing import Any

import pytest
import SoftLayer
from SoftLayer.managers.account import AccountManager

from tests.integration.official import Slcli, cancel_all, client_of, order
from tests.integration.until import until

PLACE = ("--location", "lon04")
ORDERS = {
    "endurance-block": ("block", ("--storage-type", "endurance", "--tier", "4", "--size", 100, "--os-type", "LINUX")),
    "performance-block": (
        "block",
        ("--storage-type", "performance", "--iops", 500, "--size", 100, "--os-type", "LINUX"),
    ),
    "endurance-file": ("file", ("--storage-type", "endurance", "--tier", "2", "--size", 250)),
    "performance-file": ("file", ("--storage-type", "performance", "--iops", 200, "--size", 20)),
}


@pytest.fixture(scope="module")
def slcli(account_emulator):
    return Slcli(account_emulator.config_file)


@pytest.fixture(params=["xmlrpc", "rest"])
def client(request, account_emulator):
    return client_of(account_emulator, request.param)


@pytest.fixture(scope="module")
def guest(account_emulator):
    client = client_of(account_emulator)
    yield order(client)
    cancel_all(client)


@pytest.fixture(autouse=True)
def nothing_left(account_emulator):
    """Each test sees its own volumes only."""
    yield
    client = client_of(account_emulator)
    for volume in volumes(client, "block") + volumes(client, "file"):
        if volume.get("billingItem"):
            until(lambda volume=volume: idle(client, volume["id"]))
            if volume["billingItem"]["cancellationDate"]:
                client.call("Billing_Item", "voidCancelService", id=volume["billingItem"]["id"])
            client.call("Billing_Item", "cancelItem", True, True, "", "", id=volume["billingItem"]["id"])
    until(lambda: not volumes(client, "block") + volumes(client, "file"))


def volumes(client: SoftLayer.API.BaseClient, kind: str) -> list[dict[str, Any]]:
    mask = "mask[id,notes,capacityGb,billingItem[id,hourlyFlag,cancellationDate,orderItem[order[id]]]]"
    name = {"block": "getIscsiNetworkStorage", "file": "getNasNetworkStorage"}[kind]
    return client.call("Account", name, mask=mask)


def idle(client: SoftLayer.API.BaseClient, volume_id: int) -> bool:
    mask = "mask[activeTransactionCount,volumeStatus]"
    volume = client.call("Network_Storage", "getObject", id=volume_id, mask=mask)
    return volume["activeTransactionCount"] == 0 and volume["volumeStatus"] == "PROVISION_COMPLETED"


def ordered(client: SoftLayer.API.BaseClient, **changes: Any) -> int:
    """Order a block volume through the manager and return its id once it is there."""
    wanted = {"storage_type": "endurance", "location": "lon04", "size": 100, "os_type": "LINUX", "tier_level": 4}
    wanted |= {"service_offering": "storage_as_a_service", "hourly_billing_flag": True}
    receipt = SoftLayer.BlockStorageManager(client).order_block_volume(**wanted | changes)
    (volume,) = SoftLayer.BlockStorageManager(client).list_block_volumes(order=receipt["placedOrder"]["id"])
    until(lambda: idle(client, volume["id"]))
    return volume["id"]


@pytest.mark.parametrize("billing", ["hourly", "monthly"])
@pytest.mark.parametrize("name", ORDERS)
def test_a_volume_is_ordered_shown_and_cancelled_from_the_command_line(slcli, account_emulator, name, billing):
    kind, words = ORDERS[name]
    slcli.text(kind, "volume-order", *words, *PLACE, "--billing", billing)
    client = client_of(account_emulator)
    (volume,) = volumes(client, kind)
    until(lambda: idle(client, volume["id"]))
    assert volume["billingItem"]["hourlyFlag"] is (billing == "hourly")
    shown = slcli.json(kind, "volume-detail", volume["id"])
    assert (shown["Type"], shown["Data Center"]) == (name.split("-")[0].upper(), "lon04")
    assert [each["id"] for each in slcli.json(kind, "volume-list")] == [volume["id"]]
    slcli.text(kind, "volume-cancel", volume["id"], "--immediate")
    assert volume["billingItem"]["id"] not in [each["Id"] for each in slcli.json("account", "billing-items")]


def test_a_volume_is_ordered_by_the_month_unless_it_is_told_otherwise(slcli, account_emulator):
    slcli.text("block", "volume-order", *ORDERS["endurance-block"][1], *PLACE)
    (volume,) = volumes(client_of(account_emulator), "block")
    assert volume["billingItem"]["hourlyFlag"] is False


def test_a_monthly_volume_that_is_cancelled_without_more_stays_billed_until_its_anniversary(client, slcli):
    volume_id = ordered(client, hourly_billing_flag=False)
    assert SoftLayer.BlockStorageManager(client).cancel_block_volume(volume_id) is True
    (volume,) = volumes(client, "block")
    item = AccountManager(client).get_item_detail(volume["billingItem"]["id"])
    assert item["cancellationDate"] > item["createDate"]
    assert item["nextInvoiceTotalRecurringAmount"] > 0
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="already cancelled"):
        SoftLayer.BlockStorageManager(client).cancel_block_volume(volume_id, immediate=True)
    assert slcli.json("block", "volume-detail", volume_id)["ID"] == volume_id


def test_an_hourly_volume_that_is_cancelled_without_more_ends_at_once(client):
    volume_id = ordered(client)
    assert SoftLayer.BlockStorageManager(client).cancel_block_volume(volume_id) is True
    assert all("billingItem" not in each for each in volumes(client, "block"))
    until(lambda: volumes(client, "block") == [])


def test_a_volume_is_lent_to_a_guest_and_taken_back(client, guest):
    manager, volume_id = SoftLayer.BlockStorageManager(client), ordered(client)
    manager.authorize_host_to_volume(volume_id, virtual_guest_ids=[guest])
    (allowed,) = manager.get_block_volume_access_list(volume_id)["allowedVirtualGuests"]
    assert (allowed["id"], allowed["allowedHost"]["name"][:4]) == (guest, "iqn.")
    vs = SoftLayer.VSManager(client)
    assert [each["id"] for each in vs.get_storage_details(guest, "ISCSI")] == [volume_id]
    assert vs.get_storage_credentials(guest)["credential"]["username"]

    def taken_back() -> bool:
        """An authorisation runs for a while, and no other one is taken meanwhile."""
        try:
            manager.deauthorize_host_to_volume(volume_id, virtual_guest_ids=[guest])
        except SoftLayer.SoftLayerAPIError as busy:
            assert "MassAccessControlModification" in str(busy.faultCode) or "being changed" in busy.faultString
            return False
        return True

    until(taken_back)
    assert manager.get_block_volume_access_list(volume_id)["allowedVirtualGuests"] == []


def test_a_volume_is_lent_noted_and_shown_from_the_command_line(client, slcli, guest):
    volume_id = ordered(client)
    slcli.text("block", "volume-set-note", volume_id, "--note", "mine")
    slcli.text("block", "access-authorize", volume_id, "-v", guest)
    assert [each["id"] for each in slcli.json("block", "access-list", volume_id)] == [guest]
    assert slcli.json("block", "volume-detail", volume_id)["Notes"] == "mine"
    assert "SL02SEL" in slcli.text("vs", "storage", guest)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, 1),
        ({"datacenter": "lon04"}, 1),
        ({"datacenter": "dal13"}, 0),
        ({"storage_type": "endurance"}, 1),
        ({"storage_type": "performance"}, 0),
    ],
    ids=str,
)
def test_volumes_are_listed_by_place_and_kind(account_emulator, wanted, found):
    client = client_of(account_emulator)
    ordered(client)
    assert len(SoftLayer.BlockStorageManager(client).list_block_volumes(**wanted)) == found
    assert SoftLayer.FileStorageManager(client).list_file_volumes() == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--storage-type", "endurance", "--tier", "4", "--size", 99999, "--os-type", "LINUX"), "price"),
        (("--storage-type", "performance", "--iops", 6000, "--size", 20, "--os-type", "LINUX"), "price for iops"),
    ],
)
def test_what_is_not_sold_is_refused_and_nothing_is_billed(slcli, account_emulator, words, why):
    before = account_emulator.status()["open_billing_items"]
    assert why in slcli.refused("block", "volume-order", *words, *PLACE)
    assert account_emulator.status()["open_billing_items"] == before


@pytest.mark.parametrize("kind", ["block", "file"])
def test_the_limit_and_the_count_of_volumes_are_shown(slcli, kind):
    assert "700" in slcli.text(kind, "volume-limits")
    assert not slcli.json(kind, "volume-count")
