"""Every mask and filter of the provider names only what SoftLayer's types have."""

import pytest

from emulator.softlayer.queries import check as check_filter
from emulator.softlayer.queries import read_mask
from providers.softlayer import (
    account,
    billing,
    guest_view,
    marked_inventory,
    order_status,
    others,
    routers,
)

OF_GUEST = "Virtual_Guest"
MASKS = {
    "guests": (account.GUEST_MASK, OF_GUEST),
    "imported guests": (guest_view.IMPORT_MASK, OF_GUEST),
    "orders": (account.ORDER_MASK, "Billing_Order"),
    "one order": (order_status.MASK, "Billing_Order"),
    "bills": (account.BILL_MASK, "Billing_Item"),
    "charges": (billing.CHARGE_MASK, "Billing_Item"),
    "a VLAN": (routers.VLAN_MASK, "Network_Vlan"),
    "volumes": (others.KINDS[0].mask, "Network_Storage"),
    "VLANs": (others.KINDS[1].mask, "Network_Vlan"),
    **{
        each.kind: (each.mask, kind)
        for each, kind in zip(
            marked_inventory.LISTINGS, (OF_GUEST, "Security_Ssh_Key", "Network_SecurityGroup"), strict=False
        )
    },
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_names_only_what_its_type_has(name):
    mask, declared = MASKS[name]
    assert read_mask(mask, declared)


@pytest.mark.parametrize(
    "each", [each for each in marked_inventory.LISTINGS if each.filter], ids=lambda each: each.kind
)
def test_a_filter_names_only_what_its_type_has(each):
    check_filter(each.filter, "Account")
