"""Content of an order, and the host key on its way into it and back."""

import pytest

from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.softlayer import specs
from microcluster.accounts.softlayer.guest import public_part
from microcluster.accounts.softlayer.ledger import pick, router_of
from microcluster.accounts.softlayer.specs import GuestSpec, cloud_config
from microcluster.core.home import Owner
from microcluster.core.ssh_key import KeyPair

SPEC = GuestSpec(
    mark="1f3a9c42",
    hostname="gpu-0",
    domain="local-1f3a9c42.microcluster",
    datacenter="lon06",
    flavor="AC1_16X120X100",
    os="UBUNTU_18_64",
    data_disks_gb=(2000, 100),
    port_speed_mbps=1000,
    backend_router_id="11",
    ssh_key_ids=("7",),
    public_security_group_ids=("21",),
    private_security_group_ids=("22",),
)
IMAGE = {"id": 2263543, "globalIdentifier": "aaaa-bbbb"}
CONTAINER = {
    "packageId": 835,
    "presetId": 405,
    "prices": [
        {"id": 1, "categories": [{"categoryCode": "os"}]},
        {"id": 2, "categories": [{"categoryCode": "guest_disk1"}]},
        {"id": 3, "item": {"keyName": "OS_UBUNTU_18_04"}},
    ],
    "virtualGuests": [{"hostname": "gpu-0", "domain": SPEC.domain}],
}


def test_an_orders_private_host_key_is_not_shown_with_its_request():
    request = SPEC.request(Owner("local", "1f3a9c42"))
    assert "PRIVATE KEY" in request.order.content["userData"][0]["value"]
    assert "PRIVATE" not in repr(request)


def test_system_disks_router_and_groups_are_in_one_hourly_san_order():
    template = specs.guest_template(SPEC, "data")
    assert template["blockDevices"] == [
        {"device": "2", "diskImage": {"capacity": 2000}},
        {"device": "3", "diskImage": {"capacity": 100}},
    ]
    assert template["operatingSystemReferenceCode"] == "UBUNTU_18_64"
    assert template["supplementalCreateObjectOptions"] == {"flavorKeyName": "AC1_16X120X100"}
    assert (template["userData"], template["sshKeys"]) == ([{"value": "data"}], [{"id": 7}])
    assert (template["hourlyBillingFlag"], template["localDiskFlag"]) == (True, False)
    assert template["networkComponents"] == [{"maxSpeed": 1000}]
    assert template["primaryNetworkComponent"] == {"securityGroupBindings": [{"securityGroup": {"id": 21}}]}
    assert template["primaryBackendNetworkComponent"] == {
        "securityGroupBindings": [{"securityGroup": {"id": 22}}],
        "router": {"id": 11},
    }


def test_a_vlan_is_named_in_the_order_and_no_router_beside_it():
    spec = SPEC.model_copy(update={"backend_router_id": None, "private_vlan_id": "1234"})
    assert specs.guest_template(spec, "")["primaryBackendNetworkComponent"] == {
        "securityGroupBindings": [{"securityGroup": {"id": 22}}],
        "networkVlan": {"id": 1234},
    }


def test_an_image_replaces_the_stock_system_and_restores_what_the_container_lost():
    container = specs.image_container(CONTAINER, specs.guest_template(SPEC, "data"), IMAGE)
    (guest,) = container["virtualGuests"]
    assert [price["id"] for price in container["prices"]] == [2]
    assert container["imageTemplateId"] == 2263543
    assert guest["blockDeviceTemplateGroup"] == {"globalIdentifier": "aaaa-bbbb"}
    assert guest["userData"] == [{"value": "data"}]
    assert guest["networkComponents"] == [{"maxSpeed": 1000}]
    assert guest["primaryBackendNetworkComponent"]["router"] == {"id": 11}


PODS = [
    {"name": "lon06.pod02", "backendRouterId": 12, "capabilities": []},
    {"name": "lon06.pod01", "backendRouterId": 11, "capabilities": ["CLOSURE_ANNOUNCED"]},
    {"name": "lon06.pod03", "backendRouterId": 13, "capabilities": []},
    {"name": "lon0.pod01", "backendRouterId": 99, "capabilities": []},
]


@pytest.mark.parametrize(
    ("wanted", "kept", "router"),
    [(None, None, "12"), (None, "13", "13"), (None, "11", "11"), ("13", "12", "13"), (None, "99", "12")],
)
def test_one_router_is_chosen_and_then_kept(wanted, kept, router):
    assert pick("lon06", PODS, wanted, kept) == router


@pytest.mark.parametrize(
    ("datacenter", "wanted", "words"),
    [("lon06", "99", "99 is not there, only 11, 12, 13"), ("atl01", None, "no pod there")],
)
def test_a_place_that_is_not_there_is_refused(datacenter, wanted, words):
    with pytest.raises(ProviderError, match=words):
        pick(datacenter, PODS, wanted, None)


VLAN = {"id": 1234, "networkSpace": "PRIVATE", "primaryRouter": {"id": 11, "datacenter": {"name": "lon06"}}}


@pytest.mark.parametrize(
    ("vlan", "words"),
    [
        (None, "private VLAN 1234: the account has none of this id. Name the id, not the number"),
        ({**VLAN, "networkSpace": "PUBLIC"}, "private VLAN 1234: it is a PUBLIC one. Name a private VLAN in lon06"),
        ({**VLAN, "primaryRouter": {"id": 9, "datacenter": {"name": "lon04"}}}, "1234: it is in lon04, the cluster in"),
    ],
)
def test_a_vlan_brings_its_router_and_an_unusable_one_is_refused(vlan, words):
    with pytest.raises(ProviderError, match=words):
        router_of("1234", vlan, "lon06")
    assert router_of("1234", VLAN, "lon06") == "11"


def test_user_data_carry_the_mark_and_a_fresh_readable_host_key():
    key = KeyPair.fresh()
    data = cloud_config(key, "local-1f3a9c42", "gpu-0")
    assert data.splitlines()[:2] == ["#cloud-config", "# microcluster local-1f3a9c42 gpu-0"]
    assert public_part(data) == key.public
    assert key.public.startswith("ssh-ed25519 AAAA") and key.public != KeyPair.fresh().public
    assert "PRIVATE" not in repr(key)


@pytest.mark.parametrize(
    "data", ["", "#!/bin/sh\ntrue", "ssh_keys: {}", "ssh_keys: {ed25519_private: x}", "{", "ssh_keys: [1]"]
)
def test_user_data_without_a_key_of_ours_has_no_public_part(data):
    assert public_part(data) is None
