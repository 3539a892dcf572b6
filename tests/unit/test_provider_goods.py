"""VLANs, subnets, routers and images: what is refused before anybody is called, and how things are told apart."""

from __future__ import annotations

import pytest

from providers.softlayer import goods, vlan, vlan_order, vlans
from providers.softlayer.errors import ProviderError
from providers.softlayer.image import IMAGE
from providers.softlayer.mark import Owner, owner_tags
from providers.softlayer.router import ROUTER, RouterSpec, pick
from providers.softlayer.spec import difference
from providers.softlayer.subnet import SUBNET
from providers.softlayer.vlan_spec import VlanSpec

MARK = "1f3a9c42"
VLAN = {"mark": MARK, "name": "train", "datacenter": "lon06"}
GUID = "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b001"


@pytest.mark.parametrize(
    ("resource", "inputs"),
    [
        (vlan, VLAN),
        (vlan, {**VLAN, "space": "PUBLIC", "routerId": "7", "hourly": False}),
        (SUBNET, {"subnetId": "7"}),
        (ROUTER, {"hostname": "bcr01a.lon06"}),
        (IMAGE, {"guid": GUID}),
    ],
)
def test_good_inputs_pass(resource, inputs):
    assert resource.check(inputs, {}) == []


@pytest.mark.parametrize(
    ("resource", "inputs", "words"),
    [
        (vlan, {**VLAN, "name": "training1"}, "20 characters, 8 of them beside the owner mark"),
        (vlan, {**VLAN, "name": "a b"}, "pattern"),
        (vlan, {**VLAN, "space": "BOTH"}, "PRIVATE"),
        (vlan, {**VLAN, "routerId": "bcr01a"}, "pattern"),
        (SUBNET, {}, "is missing"),
        (ROUTER, {}, "either routerId or hostname"),
        (ROUTER, {"routerId": "7", "hostname": "bcr01a"}, "either routerId or hostname"),
        (IMAGE, {"imageId": "7", "guid": GUID}, "either imageId or guid"),
        (IMAGE, {"guid": "7"}, "pattern"),
    ],
)
def test_what_cannot_work_is_named_before_anybody_is_called(resource, inputs, words):
    (problem,) = resource.check(inputs, {})
    assert words in problem.reason


def test_a_vlan_is_renamed_in_place_and_anything_else_replaces_it():
    assert difference(VLAN, {**VLAN, "name": "other"}, vlan.REPLACE_ON).replacing == ()
    assert difference(VLAN, {**VLAN, "routerId": "7"}, vlan.REPLACE_ON).replacing == ("routerId",)
    assert difference({"imageId": "7"}, {"imageId": "8"}, IMAGE.REPLACE_ON).replacing == ("imageId",)


def test_only_a_monthly_vlan_needs_a_warning():
    assert vlan.caution(VLAN) is None
    assert "at least one whole month" in vlan.caution({**VLAN, "hourly": False})


def test_the_order_of_a_vlan_carries_the_mark_and_the_standard_price():
    elsewhere, standard = {"id": 1, "locationGroupId": 503}, {"id": 2, "locationGroupId": ""}
    items = [
        {"keyName": "PUBLIC_NETWORK_VLAN", "prices": [{"id": 9, "locationGroupId": None}]},
        {"keyName": "PRIVATE_NETWORK_VLAN", "prices": [elsewhere, standard]},
    ]
    order = vlan_order.container(VlanSpec.of({**VLAN, "routerId": "7"}), 571, 3, items)
    assert (order["name"], order["prices"], order["routerId"]) == (f"mc-{MARK}-train", [{"id": 2}], 7)
    with pytest.raises(ProviderError, match="offers no PRIVATE_NETWORK_VLAN"):
        vlan_order.container(VlanSpec.of(VLAN), 571, 3, items[:1])


def tagged(name, *tags):
    return {"name": name, "tagReferences": [{"tag": {"name": tag}} for tag in tags]}


@pytest.mark.parametrize(
    ("row", "ours"),
    [
        (tagged(f"mc-{MARK}-train"), True),
        (tagged("renamed", *owner_tags("v100", MARK)), True),
        (tagged("mc-1f3a9c43-train"), False),
        (tagged(f"mc-{MARK}4-train"), False),
        (tagged(f"x mc-{MARK}-train"), False),
        (tagged("train", f"mc-mark-{MARK}4", "mc-stack-v100"), False),
    ],
)
def test_a_vlan_bears_the_mark_exactly_or_not_at_all(row, ours):
    assert vlans.bears(row, MARK) is ours


def test_the_stack_of_a_vlan_stands_in_its_tags_and_its_mark_also_in_its_name():
    assert vlans.owner(tagged("x", *owner_tags("v100", MARK))) == Owner("v100", MARK)
    assert vlans.owner(tagged(f"mc-{MARK}-train")) == Owner("unknown", MARK)
    assert vlans.owner(tagged("train", "microcluster")) is None


PODS = [
    {
        "name": f"{place}.pod01",
        "backendRouterId": number,
        "backendRouterName": f"bcr01a.{place}",
        "frontendRouterId": number + 500,
        "frontendRouterName": f"fcr01a.{place}",
    }
    for number, place in ((1, "lon04"), (2, "lon06"))
]


def test_a_router_is_picked_by_id_or_full_name_and_a_name_that_several_have_is_refused():
    assert pick(PODS, RouterSpec(router_id="502"))["hostname"] == "fcr01a.lon06"
    assert pick(PODS, RouterSpec(hostname="bcr01a.lon04"))["routerId"] == "1"
    assert pick(PODS[:1], RouterSpec(hostname="bcr01a"))["space"] == "PRIVATE"
    assert pick(PODS, RouterSpec(hostname="bcr09a")) is None
    with pytest.raises(ProviderError, match="several have this name: bcr01a.lon04, bcr01a.lon06"):
        pick(PODS, RouterSpec(hostname="bcr01a"))


@pytest.mark.parametrize(
    ("receipt", "made"),
    [
        ({"placedOrder": {"id": 7}, "orderId": 8}, "order-7"),
        ({"orderId": 8}, "order-8"),
        ({"orderDate": "today"}, None),
        ("nonsense", None),
    ],
)
def test_a_receipt_names_the_order_and_nothing_else(receipt, made):
    assert goods.receipt_order(receipt) == made
