"""The official client's keys, security groups, VLANs, subnets and images in the emulated account."""

import pytest
import SoftLayer

from tests.integration.official import PUBLIC_KEY, Slcli, cancel_all, client_of, order
from tests.integration.until import until

IMAGE, IMAGE_NAME = 2263543, "docker-nvidia-ubuntu16"


@pytest.fixture(scope="module")
def slcli(account_emulator):
    return Slcli(account_emulator.config_file)


@pytest.fixture(params=["xmlrpc", "rest"])
def client(request, account_emulator):
    return client_of(account_emulator, request.param)


@pytest.fixture
def network(client):
    return SoftLayer.NetworkManager(client)


@pytest.fixture(scope="module")
def guest(account_emulator):
    client = client_of(account_emulator)
    yield order(client)
    cancel_all(client)


def test_a_key_is_added_found_by_its_label_edited_and_deleted(client):
    keys = SoftLayer.SshKeyManager(client)
    made = keys.add_key(PUBLIC_KEY, "mine", "a note")
    assert [each["id"] for each in keys.list_keys(label="mine")] == [made["id"]]
    assert keys.resolve_ids("mine") == [made["id"]]
    keys.edit_key(made["id"], label="ours", notes="another")
    shown = keys.get_key(made["id"])
    assert (shown["label"], shown["notes"], shown["key"]) == ("ours", "another", PUBLIC_KEY)
    keys.delete_key(made["id"])
    assert keys.list_keys() == []


def test_a_second_key_of_one_fingerprint_is_refused(client):
    keys = SoftLayer.SshKeyManager(client)
    made = keys.add_key(PUBLIC_KEY, "first")
    with pytest.raises(SoftLayer.SoftLayerAPIError):
        keys.add_key(f"{PUBLIC_KEY} somebody", "second")
    assert [each["label"] for each in keys.list_keys()] == ["first"]
    keys.delete_key(made["id"])


def test_the_command_line_adds_prints_edits_and_removes_a_key(slcli, tmp_path):
    public = tmp_path / "key.pub"
    public.write_text(f"{PUBLIC_KEY} someone\n")
    slcli.text("sshkey", "add", "-f", public, "typed", "--note", "n")
    slcli.text("sshkey", "edit", "typed", "--label", "edited", "--note", "m")
    assert [(each["label"], each["notes"]) for each in slcli.json("sshkey", "list")] == [("edited", "m")]
    slcli.text("sshkey", "print", "edited", "-f", public)
    assert public.read_text() == f"{PUBLIC_KEY} someone"
    slcli.text("sshkey", "remove", "edited")
    assert slcli.json("sshkey", "list") == []


def test_a_group_is_made_gets_rules_is_attached_and_deleted(network, guest):
    group = network.create_securitygroup("members", "ours")["id"]
    network.add_securitygroup_rule(
        group,
        remote_ip="203.0.113.7/32",
        direction="ingress",
        ethertype="IPv4",
        protocol="tcp",
        port_min=22,
        port_max=22,
    )
    (rule,) = network.list_securitygroup_rules(group)
    assert (rule["remoteIp"], rule["portRangeMin"], rule["portRangeMax"]) == ("203.0.113.7/32", 22, 22)
    network.edit_securitygroup_rule(group, rule["id"], port_max=23)
    assert network.list_securitygroup_rules(group)[0]["portRangeMax"] == 23
    component = network.client.call("Virtual_Guest", "getPrimaryBackendNetworkComponent", id=guest)["id"]
    network.attach_securitygroup_component(group, component)
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="in use"):
        network.delete_securitygroup(group)
    network.detach_securitygroup_component(group, component)
    network.remove_securitygroup_rule(group, rule["id"])
    assert network.get_securitygroup(group)["rules"] == []
    network.delete_securitygroup(group)
    assert network.list_securitygroups() == []


def test_the_command_line_makes_edits_binds_and_deletes_a_group(slcli, guest):
    group = slcli.json("securitygroup", "create", "-n", "typed", "-d", "by hand")["id"]
    slcli.text("securitygroup", "edit", group, "--name", "edited")
    slcli.text("securitygroup", "rule-add", group, "-d", "egress", "--protocol", "udp", "-m", 53, "-M", 53)
    (rule,) = slcli.json("securitygroup", "rule-list", group)
    assert (rule["direction"], rule["protocol"], rule["portRangeMin"]) == ("egress", "udp", 53)
    slcli.text("securitygroup", "interface-add", group, "--server", guest, "--interface", "private")
    (attached,) = slcli.json("securitygroup", "interface-list", group)
    assert (attached["hostname"], attached["interface"]) == ("gpu-0", "PRIVATE")
    slcli.text("securitygroup", "interface-remove", group, "--server", guest, "--interface", "private")
    slcli.text("securitygroup", "rule-remove", group, rule["id"])
    assert slcli.json("securitygroup", "detail", group)["rules"] == []
    slcli.text("securitygroup", "delete", group)
    assert slcli.json("securitygroup", "list") == []


@pytest.mark.parametrize(
    ("wanted", "spaces"),
    [
        ({}, ["PRIVATE", "PUBLIC"]),
        ({"datacenter": "lon04"}, ["PRIVATE", "PUBLIC"]),
        ({"datacenter": "dal13"}, []),
        ({"vlan_number": 1201}, ["PUBLIC"]),
        ({"name": "nobody's"}, []),
    ],
    ids=str,
)
def test_vlans_are_listed_by_place_number_and_name(network, guest, wanted, spaces):
    assert sorted(each["networkSpace"] for each in network.list_vlans(**wanted)) == spaces


def test_an_automatic_vlan_is_shown_named_and_tagged_but_not_billed_or_cancelled(network, guest):
    (vlan,) = network.list_vlans(vlan_number=1201)
    network.edit(vlan["id"], name="front", tags="a,b")
    shown = network.get_vlan(vlan["id"], mask="mask[id,name,billingItem,virtualGuests[id],tagReferences[tag[name]]]")
    assert (shown["name"], "billingItem" in shown) == ("front", False)
    assert [each["tag"]["name"] for each in shown["tagReferences"]] == ["a", "b"]
    assert [each["id"] for each in shown["virtualGuests"]] == [guest]
    assert network.resolve_vlan_ids("front") == [vlan["id"]]
    assert str(guest) in network.get_cancel_failure_reasons(vlan["id"])[0]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({}, 2),
        ({"datacenter": "lon04"}, 2),
        ({"network_space": "PRIVATE"}, 1),
        ({"subnet_type": "PRIMARY"}, 2),
        ({"version": 6}, 0),
    ],
    ids=str,
)
def test_subnets_are_listed_by_place_space_and_kind(network, guest, wanted, count):
    assert len(network.list_subnets(**wanted)) == count


def test_a_subnet_is_shown_with_its_addresses_and_found_by_its_identifier(network, guest):
    (subnet,) = network.list_subnets(network_space="PUBLIC")
    mask = "mask[networkIdentifier,cidr,virtualGuests[id],ipAddresses[ipAddress,isGateway]]"
    shown = network.get_subnet(subnet["id"], mask=mask)
    assert (shown["networkIdentifier"], shown["cidr"]) == ("198.51.100.0", 24)
    assert [each["id"] for each in shown["virtualGuests"]] == [guest]
    assert [each["ipAddress"] for each in shown["ipAddresses"] if each["isGateway"]] == ["198.51.100.1"]
    assert network.resolve_subnet_ids("198.51.100.0") == [subnet["id"]]


def test_pods_and_datacenters_are_listed(network):
    assert {"lon04.pod01", "lon04.pod02"} == {each["name"] for each in network.get_pods("lon04")}
    assert network.get_closed_pods() == []
    assert "lon04" in {each["name"] for each in network.get_list_datacenter()}


def test_an_ordered_vlan_is_billed_and_cancelled_from_the_command_line(slcli, network, account_emulator):
    account_emulator.order_in_portal("vlan", text="typed")
    (vlan,) = network.list_vlans(name="typed", mask="mask[id,billingItem[id,categoryCode]]")
    assert vlan["billingItem"]["categoryCode"] == "network_vlan"
    shown = {each["Category Code"] for each in slcli.json("account", "billing-items")}
    assert "network_vlan" in shown
    slcli.text("vlan", "edit", vlan["id"], "--name", "edited")
    assert slcli.json("vlan", "detail", vlan["id"])["number"]
    slcli.text("vlan", "cancel", vlan["id"])
    assert network.list_vlans(name="edited") == []
    assert "network_vlan" not in {each["Category Code"] for each in slcli.json("account", "billing-items")}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("vlan", "list", "--datacenter", "lon04"), '"Virtual servers": 1'),
        (("subnet", "list"), "198.51.100.0/24"),
        (("subnet", "detail", "198.51.100.0"), "198.51.100.1"),
        (("image", "list", "--private"), IMAGE_NAME),
        (("image", "list", "--name", IMAGE_NAME), str(IMAGE)),
        (("image", "detail", IMAGE), "5f2c8c7e-3a0b-4b5e-9d3f-7f0c2a64b001"),
    ],
)
def test_the_command_line_shows_networks_and_images(slcli, guest, words, text):
    assert text in slcli.text(*words)


def test_an_image_is_found_by_name_and_guid(client):
    images = SoftLayer.ImageManager(client)
    guid = images.get_image(IMAGE)["globalIdentifier"]
    assert [each["id"] for each in images.list_private_images(guid=guid)] == [IMAGE]
    assert images.resolve_ids(IMAGE_NAME) == [IMAGE]
    assert list(images.list_private_images(name="nobody's")) == []


def test_the_automatic_vlans_go_with_their_last_guest(account_emulator):
    client = client_of(account_emulator)
    made = order(client, hostname="alone", datacenter="wdc07")
    network = SoftLayer.NetworkManager(client)
    assert len(network.list_vlans(datacenter="wdc07")) == 2
    SoftLayer.VSManager(client).cancel_instance(made)
    until(lambda: network.list_vlans(datacenter="wdc07") == [])
