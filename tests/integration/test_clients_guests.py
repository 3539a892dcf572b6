"""The official client orders, lists, shows, changes and cancels guests of the emulated account."""

import pytest
import SoftLayer

from tests.integration.official import DOMAIN, GUEST, PUBLIC_KEY, Slcli, cancel_all, client_of, idle, order
from tests.integration.until import until

CREATE = (
    *("vs", "create", "-D", DOMAIN, "--flavor", "AC1_8X60X25", "-d", "lon04"),
    *("-o", "UBUNTU_18_64", "--san", "--network", 1000),
)


@pytest.fixture(scope="module")
def slcli(account_emulator):
    return Slcli(account_emulator.config_file)


@pytest.fixture(params=["xmlrpc", "rest"])
def vs(request, account_emulator):
    return SoftLayer.VSManager(client_of(account_emulator, request.param))


@pytest.fixture
def direct(account_emulator):
    return SoftLayer.VSManager(client_of(account_emulator))


@pytest.fixture(scope="module")
def two(account_emulator):
    """Two guests that only look; an hourly one with tags and a monthly one without."""
    client = client_of(account_emulator)
    ids = [
        order(client, tags="train,mc-1f3a9c42"),
        order(
            client,
            hostname="pays-monthly",
            datacenter="dal13",
            hourly=False,
            flavor="AC1_8X60X25",
            nic_speed=100,
            disks=["25"],
        ),
    ]
    yield ids
    cancel_all(client)


def ready(vs: SoftLayer.VSManager, hostname: str) -> None:
    """The command's own --wait looks every ten seconds."""
    (guest,) = vs.list_instances(hostname=hostname, mask="mask[id]")
    until(lambda: idle(vs.client, guest["id"]))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, [0, 1]),
        ({"hourly": True, "monthly": False}, [0]),
        ({"hourly": False, "monthly": True}, [1]),
        ({"tags": ["train"]}, [0]),
        ({"tags": ["train", "another"]}, [0]),
        ({"tags": ["another"]}, []),
        ({"cpus": 8}, [1]),
        ({"memory": 122880}, [0]),
        ({"hostname": "pays-monthly"}, [1]),
        ({"hostname": "pays-*"}, [1]),
        ({"domain": DOMAIN}, [0, 1]),
        ({"datacenter": "lon04"}, [0]),
        ({"nic_speed": 100}, [1]),
        ({"transient": True}, []),
    ],
    ids=str,
)
def test_guests_are_listed_by_what_they_are(two, vs, wanted, found):
    assert [each["id"] for each in vs.list_instances(**wanted)] == [two[number] for number in found]


def test_a_guest_is_found_by_its_name_and_by_either_address(two, vs):
    guest = vs.get_instance(two[0])
    for name in ("gpu-0", guest["primaryIpAddress"], guest["primaryBackendIpAddress"]):
        assert vs.resolve_ids(name) == [two[0]]
    assert vs.resolve_ids("nobody") == []


def test_a_guest_is_shown_with_disks_preset_system_and_bill(two, vs):
    guest = vs.get_instance(two[0])
    assert guest["billingItem"]["orderItem"]["preset"]["keyName"] == "AC1_16X120X100"
    assert guest["operatingSystem"]["softwareLicense"]["softwareDescription"]["referenceCode"] == "UBUNTU_18_64"
    assert {"guest_disk1", "guest_pcie_device0", "port_speed"} <= {
        each["categoryCode"] for each in guest["billingItem"]["children"]
    }
    assert [each["diskImage"]["capacity"] for each in vs.get_local_disks(two[0])] == [100, 2, 2000, 64]
    assert {each["tag"]["name"] for each in guest["tagReferences"]} == {"train", "mc-1f3a9c42"}


def test_what_can_be_ordered_is_listed(vs, slcli):
    options = vs.get_create_options()
    assert {"AC1_16X120X100", "AC2_16X120X100"} <= {each["key"] for each in options["sizes"]}
    assert {"lon04", "dal13"} <= {each["key"] for each in options["locations"]}
    assert "UBUNTU_18_64" in {each["referenceCode"] for each in options["operating_systems"]}
    printed = set(slcli.text("vs", "create-options", "lon04").split('"'))
    assert {"AC1_16X120X100", "UBUNTU_18_64", "GUEST_DISK_2000_GB_SAN"} <= printed


def test_an_order_is_verified_with_its_price_and_orders_nothing(two, vs, account_emulator):
    before = account_emulator.status()["open_billing_items"]
    template = vs.verify_create_instance(**GUEST)
    assert {each["item"]["keyName"] for each in template["prices"]} >= {"GUEST_DISK_2000_GB_SAN"}
    assert account_emulator.status()["open_billing_items"] == before


def test_several_guests_are_ordered_at_once_and_cancelled_one_by_one(vs):
    made = vs.create_instances([GUEST | {"hostname": f"many-{number}"} for number in range(3)])
    assert [each["hostname"] for each in made] == ["many-0", "many-1", "many-2"]
    assert all(vs.wait_for_ready(each["id"], 30, delay=0.1, pending=True) for each in made)
    assert all(vs.cancel_instance(each["id"]) for each in made)
    until(lambda: vs.list_instances(hostname="many-*") == [])


def test_names_notes_tags_user_data_and_speeds_are_changed_in_place(direct):
    guest_id = order(direct.client, hostname="edited", disks=["100"])
    assert direct.edit(guest_id, userdata="#!/bin/sh", hostname="renamed", notes="mine", tags="a,b")
    assert direct.change_port_speed(guest_id, True, 100)
    assert direct.change_port_speed(guest_id, False, 10)
    guest = direct.get_instance(guest_id)
    assert (guest["hostname"], guest["notes"], guest["userData"][0]["value"]) == ("renamed", "mine", "#!/bin/sh")
    assert [each["tag"]["name"] for each in guest["tagReferences"]] == ["a", "b"]
    assert [each["maxSpeed"] for each in guest["networkComponents"]] == [10, 100]
    direct.cancel_instance(guest_id)


def test_the_operating_system_is_reloaded_in_a_transaction(emulator_with):
    direct = SoftLayer.VSManager(client_of(emulator_with(clock_step_s=10.0)))
    guest_id = order(direct.client, hostname="reloaded")
    direct.reload_instance(guest_id)
    guest = direct.get_instance(guest_id)
    assert guest["lastOperatingSystemReload"]["id"] == guest["activeTransaction"]["id"]
    assert direct.wait_for_ready(guest_id, 30, delay=0.1)


def test_a_guest_is_quoted_ordered_shown_and_cancelled_from_the_command_line(slcli, direct):
    quoted = slcli.json(*CREATE, "-H", "typed", "--test")
    assert {each["Description"]: each["Cost"] for each in quoted}["1 Gbps Public & Private Network Uplinks"] == 0.04
    slcli.text(*CREATE, "-H", "typed", "--tag", "one,two", "--userdata", "#cloud-config")
    ready(direct, "typed")
    shown = slcli.json("vs", "detail", "typed", "--price", "--passwords")
    assert (shown["preset"], shown["tags"], shown["billing"]) == ("AC1_8X60X25", ["one", "two"], "Hourly")
    assert shown["users"][0]["username"] == "root"
    assert shown["Price rate"] >= 1.988
    assert slcli.json("vs", "ready", "typed") == "READY"
    slcli.text("vs", "cancel", "typed")
    assert "billingItem" not in direct.get_instance(shown["id"])


def test_a_key_an_image_and_a_router_go_with_the_order(slcli, direct, two):
    slcli.text("sshkey", "add", "-k", PUBLIC_KEY, "typed-key")
    slcli.text(
        *("vs", "create", "-H", "imaged", "-D", DOMAIN, "--flavor", "AC1_8X60X100", "-d", "lon04", "--image", 2263543),
        *("--san", "--network", 100, "-k", "typed-key", "--router-private", 7002),
    )
    ready(direct, "imaged")
    mask = "mask[id,blockDeviceTemplateGroup[id],sshKeys[label],backendRouters[id]]"
    (guest,) = direct.list_instances(hostname="imaged", mask=mask)
    assert guest["blockDeviceTemplateGroup"]["id"] == 2263543
    assert [each["label"] for each in guest["sshKeys"]] == ["typed-key"]
    assert [each["id"] for each in guest["backendRouters"]] == [7002]
    slcli.text("vs", "cancel", "imaged")
    slcli.text("sshkey", "remove", "typed-key")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-d", "dal10"), "not sold in dal10"),
        (("--flavor", "ACL1_8X60X100"), "localDiskFlag"),
        (("-o", "WIN_3.11"), "WIN_3.11"),
        (("--network", 5), "maxSpeed"),
    ],
)
def test_what_is_not_sold_is_refused_with_the_reason_and_nothing_is_ordered(slcli, direct, words, why):
    assert why in slcli.refused(*CREATE, "-H", "refused", *words)
    assert direct.list_instances(hostname="refused") == []


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("power-off", "--hard"), "HALTED"),
        (("power-on",), "RUNNING"),
        (("reboot", "--soft"), "RUNNING"),
    ],
)
def test_power_is_switched_from_the_command_line_and_the_charge_goes_on(slcli, two, words, state):
    slcli.text("vs", *words, "gpu-0")
    shown = slcli.json("vs", "detail", "gpu-0")
    assert (shown["state"], shown["status"]) == (state, "ACTIVE")
    assert slcli.json("vs", "billing", "gpu-0")["Billing Item Id"]


def test_the_command_line_edits_a_guest(slcli, direct, two):
    slcli.text("vs", "edit", two[1], "--userdata", "hello", "--tag", "x,y", "--public-speed", 10)
    guest = direct.get_instance(two[1])
    assert guest["userData"][0]["value"] == "hello"
    assert [each["tag"]["name"] for each in guest["tagReferences"]] == ["x", "y"]
    assert guest["networkComponents"][1]["maxSpeed"] == 10


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), ["gpu-0", "pays-monthly"]),
        (("--hourly",), ["gpu-0"]),
        (("--monthly",), ["pays-monthly"]),
        (("--search",), ["gpu-0", "pays-monthly"]),
        (("--tag", "train"), ["gpu-0"]),
        (("--sortby", "hostname", "--datacenter", "dal13"), ["pays-monthly"]),
    ],
)
def test_the_command_line_lists_guests(slcli, two, words, found):
    listed = slcli.json("vs", "list", *words, "--columns", "hostname,datacenter,id")
    assert sorted(each["hostname"] for each in listed if each["id"] in two) == found


def test_the_command_line_shows_a_guests_credentials_storage_and_bill(slcli, two):
    assert slcli.json("vs", "credentials", "gpu-0")[0]["username"] == "root"
    assert '"Capacity": 2000' in slcli.text("vs", "storage", "gpu-0")
    parts = {each["Description"]: each["Recurring Price"] for each in slcli.json("vs", "billing", "gpu-0")["prices"]}
    assert parts["2000 GB (SAN)"] > 0
