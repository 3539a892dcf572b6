"""Every mask and filter of the provider names only what SoftLayer's types have."""

import pytest

from emulator.softlayer.queries import check as check_filter
from emulator.softlayer.queries import read_mask
from providers.softlayer import account, billing, ledger, views

MASKS = {
    "guests": (views.GUEST_MASK, "Virtual_Guest"),
    "orders": (billing.ORDER_MASK, "Billing_Order"),
    "one order": (billing.STATUS_MASK, "Billing_Order"),
    "bills": (billing.BILL_MASK, "Billing_Item"),
    "charges": (billing.CHARGE_MASK, "Billing_Item"),
    "a VLAN": (ledger.VLAN_MASK, "Network_Vlan"),
    "keys": (views.KEY_MASK, "Security_Ssh_Key"),
    "groups": (views.GROUP_MASK, "Network_SecurityGroup"),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_names_only_what_its_type_has(name):
    mask, declared = MASKS[name]
    assert read_mask(mask, declared)


def test_a_filter_names_only_what_its_type_has():
    check_filter(account.OF_GUESTS, "Account")
