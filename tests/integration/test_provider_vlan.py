"""Guests in a private VLAN that the stack file names."""

from providers.softlayer import billing
from providers.softlayer.specs import GuestSpec
from tests.integration.provider_cluster import LEDGER, Onlooker, guest

FOREIGN = "other-00000000.microcluster"


def network_of(onlooker: Onlooker, guest_id: str) -> tuple[str, str]:
    """Return the private VLAN and the router of a guest."""
    side = "primaryBackendNetworkComponent"
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
