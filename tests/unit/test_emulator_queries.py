"""Object masks and filters: what a caller gets to see, and of which objects."""

import re

import pytest

from emulator.softlayer.faults import Fault
from emulator.softlayer.queries import View, check, project, read_mask, select

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
        ("mask[id,tagReferenceCount,blockDeviceCount]", {"id": 7, "tagReferenceCount": 0, "blockDeviceCount": 2}),
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


def test_only_declared_and_emulated_properties_are_read_and_others_refused():
    assert read_mask("mask[billingItem[resourceTableId]]", TYPE) == {"billingItem": {"resourceTableId": {}}}
    with pytest.raises(Fault, match="does not emulate property 'host' of SoftLayer_Virtual_Guest"):
        shown("mask[id,host[id]]")
    with pytest.raises(Fault, match="'colour', which SoftLayer_Virtual_Guest has not"):
        project(View({"id": 7, "colour": "red"}), {}, TYPE)


def test_a_count_of_what_is_no_list_is_refused():
    with pytest.raises(Fault, match="does not emulate property 'datacenterCount'"):
        shown("mask[id,datacenterCount]")
    with pytest.raises(Fault, match="Property 'hostnameCount' not valid"):
        read_mask("mask[id,hostnameCount]", TYPE)


def test_a_mask_may_cast_to_a_type_that_extends_the_listed_one():
    assert read_mask("mask(SoftLayer_Hardware_Server)[id,datacenter.name]", "Hardware")["datacenter"] == {"name": {}}
    with pytest.raises(Fault, match="Property 'colour' not valid for 'SoftLayer_Hardware_Server'"):
        read_mask("mask(SoftLayer_Hardware_Server)[colour]", "Hardware")


@pytest.mark.parametrize("cast", ["SoftLayer_Hardware_Server", "SoftLayer_Virtual_Guest_Block_Device", "Nonsense"])
def test_a_cast_to_another_type_is_refused(cast):
    with pytest.raises(Fault, match=f"Unable to parse object mask 'mask\\({cast}\\)"):
        read_mask(f"mask({cast})[id]", "Virtual_Guest")


def test_a_filter_by_an_unknown_property_is_refused_and_names_its_type():
    check({"hostname": {"operation": "x"}, "datacenter": {"name": {"operation": "x"}}}, TYPE)
    with pytest.raises(Fault, match="Property 'nam' not valid for 'SoftLayer_Location'"):
        check({"datacenter": {"nam": {"operation": "x"}}}, TYPE)


ASCENDING, DESCENDING = (
    {"operation": "orderBy", "options": [{"name": "sort", "value": [direction]}]} for direction in ("ASC", "DESC")
)


def guest(number: int, hostname: str, *tags: str, notes: str | None = None, hourly: bool = True) -> View:
    references = [{"tag": {"name": tag}} for tag in tags]
    local = {"id": number, "hostname": hostname, "notes": notes}
    return View(local, {"tagReferences": lambda: references, "hourlyBillingFlag": lambda: hourly})


GUESTS = [
    guest(3, "gpu-0", "a", "beta"),
    guest(1, "GPU-1", "b", notes="2026-01-02"),
    guest(2, "web-0", notes="2026-11-02", hourly=False),
]


def ids(tree: dict) -> list[int]:
    return [view.local["id"] for view in select(GUESTS, tree)]


def data(*wanted: str) -> dict:
    return {"operation": "in", "options": [{"name": "data", "value": list(wanted)}]}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"hostname": {"operation": "^= gpu-"}}, [3, 1]),
        ({"hostname": {"operation": "$= -0"}}, [3, 2]),
        ({"hostname": {"operation": "_= gpu-1"}}, [1]),
        ({"hostname": {"operation": "*= PU"}}, [3, 1]),
        ({"notes": {"operation": "*=2026-01"}}, [1]),  # as `slcli account billing-items --create` writes it
        ({"hostname": {"operation": "gpu-1"}}, []),  # plain text: the same in every letter
        ({"hostname": {"operation": "GPU-1"}}, [1]),
        ({"id": {"operation": 3}}, [3]),
        ({"hourlyBillingFlag": {"operation": 0}}, [2]),
        ({"notes": {"operation": "is null"}}, [3]),
        ({"tagReferences": {"operation": "is null"}}, [2]),
        ({"tagReferences": {"tag": {"name": {"operation": "^= b"}}}}, [3, 1]),  # any member of a list
        ({"tagReferences": {"tag": {"name": data("a", "b", "c")}}}, [3, 1]),
        ({"id": ASCENDING, "hostname": {"operation": "$= -0"}}, [2, 3]),
        ({"id": DESCENDING}, [3, 2, 1]),
    ],
)
def test_a_filter_selects_and_orders_what_meets_every_condition(tree, expected):
    assert ids(tree) == expected


@pytest.mark.parametrize(
    "leaf",
    [
        {"operation": "not null"},
        {"operation": "orderBy"},
        {"operation": "!= gpu-0"},
        {"operation": "~ gpu"},
        {"operation": "> sysdate - 2"},
        {"operation": "betweenDate", "options": [{"name": "startDate", "value": ["01/01/2026"]}]},
        {"operation": "in", "options": [{"name": "other", "value": ["a"]}]},
        {"operation": "orderBy", "options": [{"name": "sort", "value": ["SIDEWAYS"]}]},
    ],
    ids=lambda leaf: leaf["operation"],
)
def test_an_operation_that_is_not_emulated_is_refused_by_its_name(leaf):
    with pytest.raises(Fault, match=rf"does not emulate the operation '{re.escape(leaf['operation'])}'"):
        ids({"hostname": leaf})
