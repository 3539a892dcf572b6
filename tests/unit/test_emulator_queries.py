"""Object masks and filters: what a caller gets to see, and of which objects."""

import re

import pytest

from emulator.softlayer.faults import Fault
from emulator.softlayer.queries import ASCENDING, check, project, read_mask, select
from emulator.softlayer.views import View

GUEST = View(
    {"id": 7, "hostname": "gpu-0"},
    {
        "datacenter": lambda: {"id": 1, "name": "lon04"},
        "activeTransaction": lambda: None,
        "tagReferences": list,
        "blockDevices": lambda: [{"device": "0"}, {"device": "2"}],
    },
)


TYPE = "SoftLayer_Virtual_Guest"


def shown(mask: str | None) -> dict:
    return project(GUEST, read_mask(mask, TYPE), TYPE)


def test_without_a_mask_only_local_properties_are_shown():
    assert shown(None) == {"id": 7, "hostname": "gpu-0"}


def test_naming_one_local_property_hides_the_other_ones():
    assert shown("mask[id]") == {"id": 7}


def test_naming_relations_alone_keeps_all_local_properties():
    assert shown("mask[datacenter[name]]") == {"id": 7, "hostname": "gpu-0", "datacenter": {"name": "lon04"}}


def test_a_relation_that_is_not_there_is_left_out_and_an_empty_list_is_not():
    assert shown("mask[id,activeTransaction[id],tagReferences]") == {"id": 7, "tagReferences": []}


@pytest.mark.parametrize(
    "mask",
    [
        "mask[id,datacenter.name]",
        "mask.id,mask.datacenter.name",
        "id, datacenter [ name ]",
        "mask[id,\n   datacenter[\n name]\n]",
    ],
)
def test_every_way_of_writing_a_mask_means_the_same(mask):
    assert shown(mask if "mask" in mask else f"mask[{mask}]") == {"id": 7, "datacenter": {"name": "lon04"}}


def test_a_mask_that_does_not_end_is_refused_with_its_text():
    with pytest.raises(Fault, match=r"mask\[id"):
        read_mask("mask[id,datacenter[name]", TYPE)


@pytest.mark.parametrize("mask", ["mask[id,hostnam]", "mask[datacenter[nam]]", "mask[blockDevices[devise]]"])
def test_a_property_that_no_such_object_has_is_refused_by_name(mask):
    with pytest.raises(Fault, match="WebService_ObjectMask: Property '(hostnam|nam|devise)' not valid for 'SoftLayer_"):
        shown(mask)


@pytest.mark.parametrize(
    ("declared", "mask"),
    [
        ("SoftLayer_Billing_Item", "mask[id,resourceTableId]"),
        ("SoftLayer_Virtual_Guest", "mask[billingItem[children[resourceTableId]]]"),
        ("SoftLayer_Virtual_Guest", "mask[billingItem.orderItem.order.items.guestId]"),
    ],
)
def test_what_only_a_subtype_has_is_refused_of_its_base_and_below_every_relation(declared, mask):
    with pytest.raises(
        Fault, match="Property '(resourceTableId|guestId)' not valid for 'SoftLayer_Billing_(Order_)?Item'"
    ):
        read_mask(mask, declared)


def test_what_a_subtype_has_is_taken_where_the_subtype_is_declared():
    assert read_mask("mask[billingItem[resourceTableId]]", TYPE) == {"billingItem": {"resourceTableId": {}}}


def test_a_real_property_that_is_not_emulated_is_refused_loudly():
    with pytest.raises(Fault, match="does not emulate property 'host' of SoftLayer_Virtual_Guest"):
        shown("mask[id,host[id]]")


def test_the_emulator_never_shows_what_no_such_object_has():
    with pytest.raises(Fault, match="'colour', which SoftLayer_Virtual_Guest has not"):
        project(View({"id": 7, "colour": "red"}), {}, TYPE)


def test_a_filter_by_what_no_such_object_has_is_refused_under_the_right_root_alone():
    check({"hostname": {"operation": "x"}, "datacenter": {"name": {"operation": "x"}}}, TYPE)
    with pytest.raises(Fault, match="Property 'nam' not valid for 'SoftLayer_Location'"):
        check({"datacenter": {"nam": {"operation": "x"}}}, TYPE)


def guest(number: int, hostname: str, *tags: str) -> View:
    references = [{"tag": {"name": tag}} for tag in tags]
    return View({"id": number, "hostname": hostname}, {"tagReferences": lambda: references})


GUESTS = [guest(3, "gpu-0", "a", "beta"), guest(1, "GPU-1", "b"), guest(2, "web-0")]


def ids(tree: dict) -> list[int]:
    return [view.local["id"] for view in select(GUESTS, tree)]


@pytest.mark.parametrize(("operation", "expected"), [("^= gpu-", [3, 1]), ("$= -0", [3, 2])])
def test_a_text_is_found_by_its_beginning_and_by_its_end(operation, expected):
    assert ids({"hostname": {"operation": operation}}) == expected


@pytest.mark.parametrize("operation", ["gpu-0", "_= gpu-0", "*=pu", "in", "not null", "betweenDate"])
def test_an_operation_that_is_not_emulated_is_refused_by_its_name(operation):
    with pytest.raises(Fault, match=rf"does not emulate the operation '{re.escape(operation)}'"):
        ids({"hostname": {"operation": operation}})


def test_below_a_list_any_member_may_meet_a_condition():
    assert ids({"tagReferences": {"tag": {"name": {"operation": "^= b"}}}}) == [3, 1]


def test_a_list_comes_in_the_order_that_is_asked_for_beside_a_condition():
    assert ids({"id": ASCENDING, "hostname": {"operation": "$= -0"}}) == [2, 3]
