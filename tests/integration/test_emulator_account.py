"""The emulated account through the official client, over XML-RPC and over REST."""

from decimal import Decimal
from typing import Any

import pytest
import SoftLayer

from tests.integration.provider_cluster import Onlooker
from tests.integration.until import until
from tests.unit.emulated import template as guest

FAR_S = 20
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{}"
READY = "id,provisionDate,activeTransaction[id,transactionGroup[name],transactionStatus[name]],billingItem[id]"


def client_of(emulator: Any, protocol: str = "xmlrpc") -> SoftLayer.API.BaseClient:
    endpoint = emulator.endpoint if protocol == "xmlrpc" else emulator.rest_endpoint
    return SoftLayer.create_client_from_env(
        username="local", api_key=emulator.key, endpoint_url=endpoint, timeout=FAR_S
    )


@pytest.fixture(params=["xmlrpc", "rest"])
def client(request, account_emulator):
    return client_of(account_emulator, request.param)


def template(hostname: str = "gpu-0", **changes: Any) -> dict[str, Any]:
    return {key: value for key, value in (guest(hostname) | changes).items() if value is not ...}


def flavor(name: str) -> dict[str, str]:
    return {"flavorKeyName": name}


def ready(client, guest_id: int) -> dict[str, Any]:
    def probe() -> Any:
        guest = client.call("Virtual_Guest", "getObject", id=guest_id, mask=READY)
        return guest if guest.get("provisionDate") and not guest.get("activeTransaction") else None

    return until(probe)


def order(client, *args: Any, **changes: Any) -> int:
    return client.call("Virtual_Guest", "createObject", template(*args, **changes))["id"]


def cancel(client, guest_id: int) -> None:
    ready(client, guest_id)
    client.call("Virtual_Guest", "deleteObject", id=guest_id)


def code_of(refused: pytest.ExceptionInfo) -> str:
    return refused.value.faultCode


IMAGE = {"blockDeviceTemplateGroup": {"globalIdentifier": "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b001"}}
NOT_EMULATED = "-32601"


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        (IMAGE, NOT_EMULATED, "blockDeviceTemplateGroup"),
        ({"transientGuestFlag": True}, NOT_EMULATED, "transientGuestFlag"),
        ({"primaryNetworkComponent": {"router": {"id": 7501}}}, NOT_EMULATED, "public interface"),
        ({"blockDevices": [{"device": "2", "diskImage": {"capacity": 2048}}]}, "Order_InvalidData", "2048"),
        ({"blockDevices": [{"device": "0", "diskImage": {"capacity": 25}}]}, "Order_InvalidData", "device 2"),
        ({"supplementalCreateObjectOptions": flavor("AC3_1X1X1")}, "Order_InvalidData", "AC3_1X1X1"),
        (
            {"supplementalCreateObjectOptions": flavor("ACL1_8X60X100"), "localDiskFlag": True},
            "Order_InvalidData",
            "SAN",
        ),
        ({"datacenter": {"name": "dal10"}}, "Order_InvalidLocation", "dal10"),
        ({"datacenter": {"name": "lon99"}}, "Order_InvalidLocation", "lon99"),
        ({"networkComponents": [{"maxSpeed": 10000}]}, "InvalidValue", "maxSpeed"),
        ({"hostname": ...}, "MissingCreationProperty", "hostname"),
        ({"localDiskFlag": True}, "InvalidValue", "localDiskFlag"),
        ({"sshKeys": [{"id": 999999}]}, "ObjectNotFound", "999999"),
        ({"primaryBackendNetworkComponent": {"router": {"id": 7501}}}, "ObjectNotFound", "7501"),
    ],
)
def test_what_softlayer_refuses_is_refused_and_nothing_is_ordered(account_emulator, changes, code, words):
    client = client_of(account_emulator)
    before = account_emulator.status()
    for method in ("generateOrderTemplate", "createObject"):
        with pytest.raises(SoftLayer.SoftLayerAPIError, match=words) as refused:
            client.call("Virtual_Guest", method, template(**changes))
        assert code_of(refused).removeprefix("SoftLayer_Exception_") == code
    after = account_emulator.status()
    assert (before["bill"], before["open_billing_items"]) == (after["bill"], after["open_billing_items"])


def test_guests_that_name_no_router_land_apart_and_those_that_do_together(account_emulator):
    client = client_of(account_emulator)
    mask = "id,primaryBackendNetworkComponent[networkVlan[id,primaryRouter[id]]]"

    def router_of(guest_id: int) -> int:
        guest = client.call("Virtual_Guest", "getObject", id=guest_id, mask=mask)
        return guest["primaryBackendNetworkComponent"]["networkVlan"]["primaryRouter"]["id"]

    apart = [order(client, f"apart-{number}") for number in range(2)]
    assert router_of(apart[0]) != router_of(apart[1])
    named = {"primaryBackendNetworkComponent": {"router": {"id": router_of(apart[1])}}}
    together = [order(client, f"together-{number}", **named) for number in range(2)]
    assert {router_of(each) for each in together} == {router_of(apart[1])}
    for guest_id in apart + together:
        cancel(client, guest_id)


def test_one_fingerprint_is_one_ssh_key(client, account_emulator):
    key = KEY.format("C" * 43)
    made = client.call("Security_Ssh_Key", "createObject", {"key": key, "label": "first", "notes": "mark"})
    with pytest.raises(SoftLayer.SoftLayerAPIError, match=made["fingerprint"]):
        client.call("Security_Ssh_Key", "createObject", {"key": key + " comment", "label": "second"})
    client.call("Security_Ssh_Key", "editObject", {"label": "renamed"}, id=made["id"])
    assert client.call("Security_Ssh_Key", "getObject", id=made["id"])["label"] == "renamed"
    assert client.call("Security_Ssh_Key", "deleteObject", id=made["id"]) is True


def test_an_attached_security_group_cannot_be_deleted(account_emulator):
    client = client_of(account_emulator)
    group = client.call("Network_SecurityGroup", "createObject", {"name": "members", "description": "ours"})["id"]
    rules = [{"direction": "ingress", "protocol": "tcp", "remoteGroupId": group}, {"direction": "egress"}]
    assert len(client.call("Network_SecurityGroup", "addRules", rules, id=group)["rules"]) == 2
    bound = {"primaryBackendNetworkComponent": {"securityGroupBindings": [{"securityGroup": {"id": group}}]}}
    guest_id = order(client, "member", **bound)
    ready(client, guest_id)
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="in use"):
        client.call("Network_SecurityGroup", "deleteObject", id=group)
    mask = "primaryBackendNetworkComponent[id,securityGroupBindings[securityGroup[id]]]"
    component = client.call("Virtual_Guest", "getObject", id=guest_id, mask=mask)["primaryBackendNetworkComponent"]
    assert component["securityGroupBindings"] == [{"securityGroup": {"id": group}}]
    client.call("Network_SecurityGroup", "detachNetworkComponents", [str(component["id"])], id=group)
    assert client.call("Network_SecurityGroup", "deleteObject", id=group) is True
    cancel(client, guest_id)


def test_filters_and_pages_find_the_guests_of_one_domain(account_emulator):
    client = client_of(account_emulator)
    made = [order(client, f"paged-{number}", domain="paged-1f3a9c42.microcluster") for number in range(3)]
    wanted = {"virtualGuests": {"domain": {"operation": "$= paged-1f3a9c42.microcluster"}}}
    page = client.call("Account", "getVirtualGuests", filter=wanted, limit=2, offset=1)
    assert (len(page), page.total_count) == (2, 3)
    every = client.call("Account", "getVirtualGuests", filter=wanted, mask="id", iter=True)
    assert sorted(each["id"] for each in every) == made
    for guest_id in made:
        cancel(client, guest_id)


def test_guests_bills_and_unfinished_transactions_survive_a_restart(emulator_with):
    emulator = emulator_with(provisioning_s=1800.0)
    client = client_of(emulator)
    guest_id = order(client, "survivor")
    before = client.call("Virtual_Guest", "getObject", id=guest_id)
    emulator.restart()
    after = client.call("Virtual_Guest", "getObject", id=guest_id)
    assert after | {"provisionDate": None} == before
    ready(client, guest_id)
    assert emulator.status()["open_billing_items"] == 1


@pytest.mark.parametrize(
    ("number", "code", "words"), [(3, "InsufficientCapacity", "lon04"), (4, "Public", "3 concurrent")]
)
def test_the_instance_limit_and_the_room_of_a_datacenter_are_settings(emulator_with, number, code, words):
    client = client_of(emulator_with(instance_limit=3, capacity={"lon04": 2}))
    container = client.call("Virtual_Guest", "generateOrderTemplate", template())
    names = [container["virtualGuests"][0] | {"hostname": f"gpu-{each}"} for each in range(number)]
    with pytest.raises(SoftLayer.SoftLayerAPIError, match=words) as refused:
        client.call("Product_Order", "placeOrder", container | {"quantity": number, "virtualGuests": names})
    assert code_of(refused) == f"SoftLayer_Exception_{code}"
    assert client.call("Account", "getVirtualGuests") == []


def test_an_address_is_free_again_when_its_guest_is_reclaimed(emulator_with):
    emulator = emulator_with(private_subnets=["10.113.7.0/29", "10.113.8.0/29"], public_subnet="198.51.100.0/28")
    client = client_of(emulator)
    first = order(client, "first")
    mask = "primaryIpAddress,primaryBackendIpAddress"
    addresses = client.call("Virtual_Guest", "getObject", id=first, mask=f"mask[{mask}]")
    cancel(client, first)
    until(lambda: not client.call("Account", "getVirtualGuests"))
    second = order(client, "second", primaryBackendNetworkComponent={"router": {"id": 7001}})
    again = client.call("Virtual_Guest", "getObject", id=second, mask=f"mask[{mask}]")
    assert again["primaryBackendIpAddress"] == addresses["primaryBackendIpAddress"] == "10.113.7.2"


def test_an_automatic_vlan_goes_with_its_last_guest(onlooker):
    guest, mask = onlooker.order("gpu-0"), "primaryBackendNetworkComponent[networkVlan[id]]"
    shown = onlooker.client.call("Virtual_Guest", "getObject", id=guest, mask=mask)
    vlan = shown["primaryBackendNetworkComponent"]["networkVlan"]["id"]
    onlooker.clean()
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Unable to find"):
        onlooker.client.call("Network_Vlan", "getObject", id=vlan)


def test_an_image_tells_of_user_data_support_and_foreign_ones_are_hidden(account_emulator):
    client, images = client_of(account_emulator), "Virtual_Guest_Block_Device_Template_Group"
    assert client.call(images, "getObject", id=2263543)["globalIdentifier"]
    assert [client.call(images, "isCloudInit", id=each) for each in (2263543, 2263001)] == [True, False]
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        client.call(images, "getObject", id=2263900)


def test_a_set_clock_dates_every_answer_and_prices_may_rise_mid_rental(emulator_with):
    emulator = emulator_with(clock_rate=1)
    before = Onlooker(emulator.config_file)
    cheap = before.order("gpu-0")
    emulator.move_clock(-7200)
    emulator.restart(price_factor=2)
    account = Onlooker(emulator.config_file)
    dear = account.order("gpu-1")
    ids = {name: int(found) for name, found in (("cheap", cheap), ("dear", dear))}
    mask = "mask[billingItem[hourlyRecurringFee]]"
    asked = {
        name: account.client.call("Virtual_Guest", "getObject", id=found, mask=mask) for name, found in ids.items()
    }
    fees = {name: Decimal(str(found["billingItem"]["hourlyRecurringFee"])) for name, found in asked.items()}
    assert fees["dear"] == 2 * fees["cheap"]
    account.account.whoami()
    assert 7195 < account.account.clock_ahead_s < 7205
