"""Object masks and filters: what a caller gets to see, and of which objects."""

import re

import pytest

from emulator.softlayer.faults import Fault
from emulator.softlayer.queries import ASCENDING, View, check, project, read_mask, select

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


LOCAL = {"id": 7, "hostname": "gpu-0"}
PLACE = {"datacenter": {"name": "lon04"}}


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (None, LOCAL),  # relations are shown only where they are named
        ("mask[id]", {"id": 7}),  # naming one local property hides the other ones
        ("mask[datacenter[name]]", LOCAL | PLACE),  # naming relations alone does not
        ("mask[id,activeTransaction[id],tagReferences]", {"id": 7, "tagReferences": []}),  # nothing, an empty list
        ("mask[id,datacenter.name]", {"id": 7} | PLACE),
        ("mask.id,mask.datacenter.name", {"id": 7} | PLACE),
        ("id, datacenter [ name ]", {"id": 7} | PLACE),
        ("mask[id,\n   datacenter[\n name]\n]", {"id": 7} | PLACE),
    ],
)
def test_a_mask_shows_what_it_names_however_it_is_written(mask, expected):
    assert shown(mask) == expected


def test_a_mask_that_does_not_end_is_refused_with_its_text():
    with pytest.raises(Fault, match=r"mask\[id"):
        read_mask("mask[id,datacenter[name]", TYPE)


@pytest.mark.parametrize(
    ("declared", "mask", "owner"),
    [
        (TYPE, "mask[id,hostnam]", "Virtual_Guest"),
        (TYPE, "mask[datacenter[nam]]", "Location"),
        ("SoftLayer_Billing_Item", "mask[id,resourceTableId]", "Billing_Item"),  # only a subtype has it
        (TYPE, "mask[billingItem[children[resourceTableId]]]", "Billing_Item"),
        (TYPE, "mask[billingItem.orderItem.order.items.guestId]", "Billing_Order_Item"),
    ],
)
def test_a_property_that_no_such_object_has_is_refused_by_name(declared, mask, owner):
    name = re.findall(r"\w+", mask)[-1]
    with pytest.raises(Fault, match=f"WebService_ObjectMask: Property '{name}' not valid for 'SoftLayer_{owner}'"):
        read_mask(mask, declared)


def test_a_property_is_read_where_its_type_declares_it_and_refused_where_we_do_not_emulate_it_or_nobody_has_it():
    assert read_mask("mask[billingItem[resourceTableId]]", TYPE) == {"billingItem": {"resourceTableId": {}}}
    with pytest.raises(Fault, match="does not emulate property 'host' of SoftLayer_Virtual_Guest"):
        shown("mask[id,host[id]]")
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


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"hostname": {"operation": "^= gpu-"}}, [3, 1]),
        ({"hostname": {"operation": "$= -0"}}, [3, 2]),
        ({"tagReferences": {"tag": {"name": {"operation": "^= b"}}}}, [3, 1]),  # any member of a list
        ({"id": ASCENDING, "hostname": {"operation": "$= -0"}}, [2, 3]),
    ],
)
def test_a_text_is_found_by_its_beginning_and_by_its_end_also_below_a_list_and_in_an_order(tree, expected):
    assert ids(tree) == expected


@pytest.mark.parametrize("operation", ["gpu-0", "_= gpu-0", "*=pu", "in", "not null", "betweenDate"])
def test_an_operation_that_is_not_emulated_is_refused_by_its_name(operation):
    with pytest.raises(Fault, match=rf"does not emulate the operation '{re.escape(operation)}'"):
        ids({"hostname": {"operation": operation}})
