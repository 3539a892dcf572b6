"""Meaning of the account's record of a guest."""

from decimal import Decimal

import pytest

from microcluster.accounts.shared.account import Pending
from microcluster.accounts.softlayer import views

READY = {
    "id": 101,
    "hostname": "gpu-0",
    "domain": "local-1f3a9c42.microcluster",
    "provisionDate": "2026-11-21T08:00:00-06:00",
    "primaryIpAddress": "203.0.113.2",
    "primaryBackendIpAddress": "10.112.7.2",
    "datacenter": {"name": "lon06"},
    "primaryBackendNetworkComponent": {"maxSpeed": 1000, "networkVlan": {"primaryRouter": {"id": 11}}},
    "blockDevices": [
        {"device": device, "diskImage": {"capacity": capacity}}
        for device, capacity in (("0", 100), ("3", 50), ("1", 2), ("2", "2000"), ("7", 64))
    ],
    "billingItem": {
        "id": 9,
        "hourlyRecurringFee": "4.4",
        "children": [{"hourlyRecurringFee": ".5"}, {"hourlyRecurringFee": ""}],
        "orderItem": {"preset": {"keyName": "AC1_16X120X100"}},
    },
}


def transaction(name: str, **more) -> dict:
    return {"activeTransaction": {"id": 1, "transactionStatus": {"name": name, **more}}}


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, None),
        (transaction("CLOUD_PROVISION_SETUP"), Pending("in transaction CLOUD_PROVISION_SETUP")),
        (transaction("POWER_ON", averageDuration="1.5"), Pending("in transaction POWER_ON", 90)),
        ({"provisionDate": None}, Pending("not provisioned yet")),
        ({"provisionDate": ""}, Pending("not provisioned yet")),
        ({"primaryIpAddress": ""}, Pending("without addresses yet")),
    ],
)
def test_a_guest_is_ready_if_provisioned_idle_and_addressed_else_says_why(change, state):
    assert views.unready({**READY, **change}) == state


@pytest.mark.parametrize("name", ["CLOUD_INSTANCE_NETWORK_RECLAIM", "RECLAIM_NETWORK", "CLOUD_ISO_BOOT_TEAR_DOWN"])
@pytest.mark.parametrize(
    "item", [None, {"id": 9, "cancellationDate": "2026-11-22T08:00:00-06:00"}], ids=["gone", "ends"]
)
def test_a_guest_that_is_being_reclaimed_is_not_alive(name, item):
    assert views.is_cancelled({**READY, **transaction(name), "provisionDate": "", "billingItem": item})
    assert views.is_cancelled({key: value for key, value in READY.items() if key != "billingItem"})


@pytest.mark.parametrize("name", ["CLOUD_INSTANCE_NETWORK_RECLAIM", "RECLAIM_NETWORK", "CLOUD_ISO_BOOT_TEAR_DOWN"])
def test_a_guest_with_an_open_billing_item_is_alive_in_any_transaction(name):
    shown = views.resource({**READY, **transaction(name)})
    assert (shown.is_alive, shown.is_billed, shown.work) == (True, True, name)


def test_the_ordered_properties_are_read_back():
    assert views.live_inputs(READY) == {
        "hostname": "gpu-0",
        "domain": "local-1f3a9c42.microcluster",
        "datacenter": "lon06",
        "flavor": "AC1_16X120X100",
        "dataDisksGb": [2000, 50],
        "portSpeedMbps": 1000,
        "backendRouterId": "11",
    }
    vlan = {"networkVlan": {"id": 1234, "primaryRouter": {"id": 11}}}
    live = views.live_inputs({**READY, "primaryBackendNetworkComponent": vlan})
    assert (live["privateVlanId"], live["backendRouterId"]) == ("1234", "11")


def test_the_price_includes_the_whole_billing_item_and_hidden_values_no_output():
    assert views.resource(READY).per_hour == Decimal("4.4")
    assert set(views.resource({"id": 101}).outputs.values()) == {None}
