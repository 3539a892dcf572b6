"""Vlan: ordered once, kept without guests, cancelled when it is empty; automatic and foreign ones are left alone."""

from __future__ import annotations

import threading

import pytest

from providers.softlayer import vlan
from providers.softlayer.waiting import Patience
from tests.integration.lossy_wire import lossy_wire
from tests.integration.provider_cluster import MARK
from tests.integration.provider_driver import Driver, Failed, Resource
from tests.integration.until import until

NET = {"mark": MARK, "name": "train", "datacenter": "lon06"}
NAME = f"mc-{MARK}-train"
MASK = "mask[id,name,billingItem[id],tagReferences[tag[name]]]"


@pytest.fixture
def driver(account_emulator, onlooker):
    with Driver(account_emulator.config_file) as running:
        yield running


def vlans(onlooker):
    """The ordered VLANs of the account."""
    listed = onlooker.client.call("Account", "getNetworkVlans", mask=MASK)
    return [each for each in listed if each.get("billingItem")]


def order_by_hand(onlooker, name):
    """Order a VLAN as somebody else would, and return its id."""
    (package,) = onlooker.client.call(
        "Product_Package", "getAllObjects", filter={"keyName": {"operation": "NETWORK_VLAN"}}, mask="mask[id]"
    )
    items = onlooker.client.call("Product_Package", "getItems", id=package["id"], mask="mask[keyName,prices[id]]")
    (price,) = [each["prices"][0]["id"] for each in items if each["keyName"] == "PRIVATE_NETWORK_VLAN"]
    container = {"complexType": "SoftLayer_Container_Product_Order_Network_Vlan", "packageId": package["id"]}
    order = {**container, "location": "lon06", "prices": [{"id": price}], "name": name, "useHourlyPricing": True}
    onlooker.client.call("Product_Order", "placeOrder", order)
    return next(str(each["id"]) for each in vlans(onlooker) if each["name"] == name)


def test_a_vlan_is_ordered_once_with_the_mark_in_its_name_and_the_stack_in_its_tags(driver, onlooker):
    made = driver.create("Vlan", "train", NET)
    (found,) = vlans(onlooker)
    assert (made.id, found["name"]) == (str(found["id"]), NAME)
    tags = {each["tag"]["name"] for each in found["tagReferences"]}
    assert tags == {"microcluster", f"mc-mark-{MARK}", "mc-stack-test"}
    assert made.outputs["billing"] == "hourly, until it is deleted: 0.015 USD an hour"
    assert made.outputs["routerHostname"].endswith(".lon06")
    assert driver.read(made).inputs == NET
    assert driver.create("Vlan", "train", NET).id == made.id


def test_a_vlan_is_ordered_behind_the_router_that_is_asked_for(driver, onlooker):
    router = driver.create("Router", "router", {"hostname": "bcr02a.lon06"})
    made = driver.create("Vlan", "train", {**NET, "routerId": router.id})
    assert made.outputs["routerId"] == router.id
    with pytest.raises(Failed, match="routerId is .* there and 1 here.*Nothing was touched"):
        driver.create("Vlan", "train", {**NET, "routerId": "1"})


def test_an_order_whose_answer_got_lost_is_found_by_the_mark_in_its_name(account_emulator, onlooker, tmp_path):
    with lossy_wire(account_emulator.endpoint, {"placeOrder": 1}) as wire:
        with Driver(wire.config(account_emulator.config_file, tmp_path)) as driver:
            made = driver.create("Vlan", "train", NET)
        assert wire.calls.count("placeOrder") == 1
    assert [str(each["id"]) for each in vlans(onlooker)] == [made.id]


def test_a_vlan_is_renamed_in_place_and_a_strangers_name_is_told_as_drift(driver, onlooker):
    made = driver.create("Vlan", "train", NET)
    driver.update(made, {**NET, "name": "other"})
    assert [each["name"] for each in vlans(onlooker)] == [f"mc-{MARK}-other"]
    onlooker.client.call("Network_Vlan", "editObject", {"name": "mine"}, id=int(made.id))
    assert driver.read(made).inputs["name"] == "mine"


def test_deleting_waits_for_cancelled_guests_and_is_proven(driver, onlooker):
    made = driver.create("Vlan", "train", NET)
    guest = onlooker.order("gpu-0", primaryBackendNetworkComponent={"networkVlan": {"id": int(made.id)}})
    with pytest.raises(Failed, match=f"cancelling VLAN {made.id}: guests are on it: {guest}"):
        driver.delete(made)
    until(lambda: not onlooker.client.call("Virtual_Guest", "getActiveTransactions", id=guest))
    onlooker.client.call("Virtual_Guest", "deleteObject", id=guest)
    driver.delete(made)
    assert vlans(onlooker) == []
    driver.delete(made)


def test_a_vlan_that_is_gone_is_gone(driver, onlooker):
    made = driver.create("Vlan", "train", NET)
    onlooker.client.call("Billing_Item", "cancelItem", True, True, "", "", id=vlans(onlooker)[0]["billingItem"]["id"])
    assert driver.read(made) is None


def test_a_vlan_is_imported_and_an_automatic_or_foreign_one_is_refused(driver, onlooker):
    made = driver.create("Vlan", "train", NET)
    imported = driver.read(Resource("Vlan", "train", made.id, {}, {}))
    assert imported.inputs == {**NET, "space": "PRIVATE", "hourly": True}
    foreign = order_by_hand(onlooker, "mc-1f3a9c43-train")
    with pytest.raises(Failed, match="does not carry the mark of stack test"):
        driver.read(Resource("Vlan", "train", foreign, {}, {}))
    onlooker.order("gpu-0", datacenter={"name": "lon04"})
    listed = onlooker.client.call("Account", "getNetworkVlans", mask="mask[id,billingItem[id]]")
    automatic = next(each for each in listed if not each.get("billingItem"))
    with pytest.raises(Failed, match="it is automatic.*goes with the last one"):
        driver.read(Resource("Vlan", "train", str(automatic["id"]), {}, {}))


def test_vlans_without_our_mark_are_neither_adopted_nor_cancelled(driver, onlooker):
    foreign = order_by_hand(onlooker, "mc-1f3a9c43-train")
    made = driver.create("Vlan", "train", NET)
    assert [str(each["id"]) for each in vlan.marked(onlooker.account.api, MARK)] == [made.id]
    vlan.close(onlooker.account, foreign, MARK, Patience(5, threading.Event()), print)
    driver.delete(made)
    assert [str(each["id"]) for each in vlans(onlooker)] == [foreign]
