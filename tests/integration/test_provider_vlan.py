"""Guests in a private VLAN that the stack file names."""

import pytest

from providers.rental.resource import HostKey
from providers.softlayer import billing, specs
from providers.softlayer.specs import GuestSpec
from tests.integration.provider_cluster import LEDGER, OWNER, Onlooker, guest
from tests.integration.provider_driver import Failed

FOREIGN = "other-00000000.microcluster"
IN_LON04 = {
    "datacenter": {"name": "lon04"},
    "supplementalCreateObjectOptions": {"flavorKeyName": "AC2_16X120X100"},
}


def network_of(onlooker: Onlooker, guest_id: str, side: str = "primaryBackendNetworkComponent") -> tuple[str, str]:
    """Return the VLAN and the router of a guest's interface."""
    mask = f"mask[{side}[networkVlan[id,primaryRouter[id]]]]"
    vlan = onlooker.client.call("Virtual_Guest", "getObject", id=int(guest_id), mask=mask)[side]["networkVlan"]
    return str(vlan["id"]), str(vlan["primaryRouter"]["id"])


def test_a_guest_is_ordered_into_the_named_vlan_and_reads_without_drift(driver, onlooker):
    vlan, router = network_of(onlooker, onlooker.order("first", FOREIGN))
    ledger = driver.create("Ledger", "ledger", {**LEDGER, "privateVlanId": vlan})
    assert ledger.outputs["backendRouterId"] == router
    # Guests that name no place land behind the routers in turn: of two, one would stand elsewhere.
    made = [driver.create("VirtualGuest", name, guest(name, privateVlanId=vlan)) for name in ("gpu-0", "gpu-1")]
    assert {network_of(onlooker, each.id) for each in made} == {(vlan, router)}
    assert driver.read(made[0]).inputs == made[0].inputs


def test_an_order_is_verified_with_the_vlan_in_it(onlooker):
    vlan, _ = network_of(onlooker, onlooker.order("first", FOREIGN))
    verified = billing.verify(onlooker.account.api, [GuestSpec.model_validate(guest("gpu-0", privateVlanId=vlan))])
    (echoed,) = verified["virtualGuests"]
    assert echoed["primaryBackendNetworkComponent"] == {"networkVlan": {"id": int(vlan)}}


def test_a_living_guest_in_another_vlan_is_not_adopted(driver, onlooker):
    data = specs.cloud_config(HostKey.fresh(), OWNER, "gpu-0")
    vlan, _ = network_of(onlooker, onlooker.order("gpu-0", user_data=data))
    with pytest.raises(Failed, match=f"privateVlanId is {vlan} there and 1 here"):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0", privateVlanId="1"))


def test_a_vlan_that_cannot_be_used_is_refused_before_anything_is_ordered(driver, onlooker):
    elsewhere, _ = network_of(onlooker, onlooker.order("first", FOREIGN, **IN_LON04))
    public, _ = network_of(onlooker, onlooker.order("second", FOREIGN), "primaryNetworkComponent")
    for vlan, words in (
        (elsewhere, "it is in lon04, the cluster in lon06"),
        (public, "it is a PUBLIC one"),
        ("123", "the account has none of this id"),
    ):
        with pytest.raises(Failed, match=f"checking the private VLAN {vlan}: {words}"):
            driver.create("Ledger", "ledger", {**LEDGER, "privateVlanId": vlan})
    assert onlooker.account.guest_list.under(OWNER) == []
