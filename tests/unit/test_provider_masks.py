"""Every mask and filter of the provider names only what SoftLayer's types have."""

from __future__ import annotations

import pytest

from emulator.filters import check as check_filter
from emulator.masks import read_mask
from providers.softlayer import belongings, charges, guests, listing, others, placing, routers, upgrade

OF_GUEST = "Virtual_Guest"
MASKS = {
    "guests": (listing.GUEST_MASK, OF_GUEST),
    "imported guests": (guests.IMPORT_MASK, OF_GUEST),
    "orders": (listing.ORDER_MASK, "Billing_Order"),
    "one order": (placing.ORDER_MASK, "Billing_Order"),
    "bills": (listing.BILL_MASK, "Billing_Item"),
    "charges": (charges.CHARGE_MASK, "Billing_Item"),
    "prices of an upgrade": (upgrade.PRICE_MASK, "Product_Item_Price"),
    "upgrade requests": (upgrade.REQUEST_MASK, "Product_Upgrade_Request"),
    "a VLAN": (routers.VLAN_MASK, "Network_Vlan"),
    "volumes": (others.KINDS[0].mask, "Network_Storage"),
    "VLANs": (others.KINDS[1].mask, "Network_Vlan"),
    **{
        each.kind: (each.mask, kind)
        for each, kind in zip(
            belongings.LISTINGS, (OF_GUEST, "Security_Ssh_Key", "Network_SecurityGroup"), strict=False
        )
    },
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_names_only_what_its_type_has(name):
    mask, declared = MASKS[name]
    assert read_mask(mask, declared)


@pytest.mark.parametrize("each", [each for each in belongings.LISTINGS if each.filter], ids=lambda each: each.kind)
def test_a_filter_names_only_what_its_type_has(each):
    check_filter(each.filter, "Account")
