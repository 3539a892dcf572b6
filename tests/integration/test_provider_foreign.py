"""Other people's things in the same account: seen, and never adopted, changed or cancelled, whatever id or mark they have."""

from typing import Any

import pytest
from click.testing import CliRunner
from SoftLayer.CLI import core

from tests.integration.provider_cluster import (
    DOMAIN,
    KEY,
    LEDGER,
    MARK,
    PUBLIC_KEY,
    STACK,
    TAGS,
    Cluster,
    Onlooker,
    group,
    guest,
)
from tests.integration.provider_driver import Driver, Failed, Resource
from tests.integration.wire import wire_to

OTHER_STACK = f"p100-{MARK}.microcluster"
STRANGERS = (
    "example.com",
    f"{STACK}-1f3a9c43.microcluster",
    f"other-{MARK}0.microcluster",
    f"{DOMAIN}.example.com",
    f"{MARK}.microcluster",
    OTHER_STACK,
)
OTHER_KEY = PUBLIC_KEY.replace("IGZpZnR5", "IGZpZnR6")
MASK = "mask[id,hostname,domain,notes,billingItem[id],tagReferences[tag[name]],primaryNetworkComponent[securityGroupBindings]]"


class Neighbours:
    """Guests, a key and a group that look like ours in everything but the mark."""

    def __init__(self, onlooker: Onlooker) -> None:
        self._call = onlooker.client.call
        notes = {"notes": f"once microcluster {STACK}-{MARK}"}
        self.guests = [onlooker.order("gpu-0", domain) for domain in STRANGERS]
        for each in self.guests:
            self._call("Virtual_Guest", "setTags", ",".join(TAGS), id=int(each))
            self._call("Virtual_Guest", "editObject", notes, id=int(each))
        name = f"{STACK}-{MARK}-members"
        self._group = self._call(
            "Network_SecurityGroup", "createObject", {"name": name, "description": notes["notes"]}
        )["id"]
        key = {"key": OTHER_KEY, "label": f"{STACK}-{MARK}", "notes": f"microcluster p100-{MARK}"}
        self._key = self._call("Security_Ssh_Key", "createObject", key)["id"]

    def shown(self) -> list[Any]:
        """Everything about them that could have been changed."""
        return [
            *(self._call("Virtual_Guest", "getObject", id=int(each), mask=MASK) for each in self.guests),
            self._call("Security_Ssh_Key", "getObject", id=self._key),
            self._call("Network_SecurityGroup", "getObject", id=self._group, mask="mask[id,name,description,rules]"),
        ]


@pytest.fixture
def neighbours(onlooker):
    return Neighbours(onlooker)


@pytest.mark.parametrize("misrooted", [False, True])
def test_a_whole_life_of_a_cluster_leaves_its_neighbours_alone(
    account_emulator, onlooker, neighbours, tmp_path, misrooted
):
    before = neighbours.shown()
    with wire_to(account_emulator.endpoint) as wire:
        wire.misroots = misrooted
        with Driver(wire.config(account_emulator.config_file, tmp_path)) as driver:
            cluster = Cluster(driver, ("gpu-0",))
            made = cluster.guests["gpu-0"]
            assert made.id not in neighbours.guests
            cluster.guests["gpu-0"] = driver.update(made, {**made.inputs, "tags": ["mine"]})
            assert driver.read(made).id == made.id
            cluster.destroy()
    assert neighbours.shown() == before
    assert sorted(str(each["id"]) for each in onlooker.billed()) == sorted(neighbours.guests)


def test_a_sweep_takes_what_bears_the_mark_and_no_lookalike(driver, onlooker, neighbours):
    before, lost = neighbours.shown(), onlooker.order("gpu-7")
    key = driver.create("SshKey", "key", KEY)
    driver.create("SecurityGroup", "group", group("swept"))
    driver.delete(Resource("Ledger", "ledger", "x", {"mark": MARK, "stack": STACK}, {}))
    assert f"Cancels guests that no state file knows: {lost}" in driver.said()
    copied = f"guest/{neighbours.guests[-1]} (gpu-0.{OTHER_STACK}) bears mark {MARK} too and is of stack p100"
    assert copied in driver.said()
    assert f"open billing items with mark {MARK}: 0" in driver.said()
    assert neighbours.shown() == before
    assert lost not in {str(each["id"]) for each in onlooker.billed()}
    assert key.id not in {str(each["id"]) for each in onlooker.client.call("Account", "getSshKeys")}
    groups = {each["name"] for each in onlooker.client.call("Network_SecurityGroup", "getAllObjects")}
    assert group("swept")["name"] not in groups


def test_a_strangers_guest_in_our_group_keeps_it_and_is_named(driver, onlooker):
    stranger = onlooker.order("theirs", "example.com")
    cluster = Cluster(driver, ("gpu-0",))
    component = onlooker.public_interface(stranger)
    onlooker.client.call("Network_SecurityGroup", "attachNetworkComponents", [component], id=int(cluster.group.id))
    driver.delete(cluster.guests["gpu-0"])
    with pytest.raises(Failed, match=rf"guest {stranger} \(theirs.example.com\), not ours"):
        driver.delete(cluster.group, timeout=30)
    mask = "networkComponentBindings[networkComponentId]"
    left = onlooker.client.call("Network_SecurityGroup", "getObject", id=int(cluster.group.id), mask=mask)
    assert [each["networkComponentId"] for each in left["networkComponentBindings"]] == [component]
    onlooker.client.call("Network_SecurityGroup", "detachNetworkComponents", [component], id=int(cluster.group.id))


def test_a_guest_ordered_by_hand_without_our_key_is_not_adopted(driver, onlooker):
    by_hand = onlooker.order("gpu-0")
    with pytest.raises(Failed, match=f"adopting guest {by_hand} .*holds no host key. Nothing was touched"):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))


@pytest.mark.parametrize("domain", ["example.com", OTHER_STACK, f"{STACK}-00000000.microcluster"])
def test_a_strangers_guest_in_our_state_is_neither_changed_nor_cancelled(driver, onlooker, domain):
    stranger = onlooker.order("gpu-0", domain)
    before = onlooker.client.call("Virtual_Guest", "getObject", id=int(stranger), mask=MASK)
    ours = Resource("VirtualGuest", "gpu-0", stranger, guest("gpu-0"), {})
    refused = rf"guest {stranger} \(gpu-0.*slcli vs edit {stranger} --domain {STACK}-{MARK}"
    for act in (
        lambda: driver.read(ours),
        lambda: driver.update(ours, guest("gpu-0", tags=["changed"])),
        lambda: driver.delete(ours),
    ):
        with pytest.raises(Failed, match=refused):
            act()
    assert onlooker.client.call("Virtual_Guest", "getObject", id=int(stranger), mask=MASK) == before


@pytest.mark.parametrize(
    ("stack", "said"),
    [(f"p100-{MARK}", "of stack p100, whose folder of keys was copied"), ("other-00000000", "without our mark")],
)
def test_a_copy_of_our_key_is_refused_and_its_group_not_adopted(driver, onlooker, stack, said):
    notes = f"microcluster {stack}"
    copied = {"key": PUBLIC_KEY, "label": "theirs", "notes": notes}
    theirs = onlooker.client.call("Security_Ssh_Key", "createObject", copied)
    with pytest.raises(Failed, match=rf"{theirs['id']} .*{said}"):
        driver.create("SshKey", "key", KEY)
    driver.delete(Resource("SshKey", "key", str(theirs["id"]), KEY, {}))
    assert [key["id"] for key in onlooker.client.call("Account", "getSshKeys")] == [theirs["id"]]
    named = {"name": group("members")["name"], "description": notes}
    theirs = onlooker.client.call("Network_SecurityGroup", "createObject", named)
    assert driver.create("SecurityGroup", "group", group("members")).id != str(theirs["id"])


@pytest.mark.parametrize("name", ["web", group("members")["name"]])
def test_a_strangers_group_whose_id_stands_in_our_state_is_not_changed(driver, onlooker, name):
    theirs = onlooker.client.call("Network_SecurityGroup", "createObject", {"name": name, "description": "open to all"})
    with pytest.raises(Failed, match=f"working on security group {theirs['id']} .*not this stack's.* Nothing was done"):
        driver.update(Resource("SecurityGroup", "group", str(theirs["id"]), group("members"), {}), group("members"))
    mask = "mask[name,description,rules[id]]"
    after = onlooker.client.call("Network_SecurityGroup", "getObject", id=theirs["id"], mask=mask)
    assert after == {"name": name, "description": "open to all", "rules": []}


def test_a_strangers_key_whose_id_stands_in_our_state_is_not_renamed(driver, onlooker):
    theirs = onlooker.client.call("Security_Ssh_Key", "createObject", {"label": "laptop", "key": OTHER_KEY})
    with pytest.raises(Failed, match=f"working on ssh key {theirs['id']} .*not this stack's.* Nothing was done to it"):
        driver.update(Resource("SshKey", "key", str(theirs["id"]), KEY, {}), KEY)
    after = onlooker.client.call("Security_Ssh_Key", "getObject", id=theirs["id"], mask="mask[label]")
    assert after == {"label": "laptop"}


OF_ANOTHER_MARK = (
    ("volume", {"notes": f"microcluster {STACK}-{MARK}0"}),
    ("volume", {"notes": f"old microcluster {STACK}-{MARK}"}),
    ("vlan", {"notes": "microcluster"}),
)


@pytest.mark.parametrize("kind", ["volume", "vlan"])
def test_a_marked_billing_item_fails_the_ledgers_proof_until_it_is_cancelled(driver, onlooker, account_emulator, kind):
    account_emulator.order_in_portal(kind, datacenter="lon06", notes=f"microcluster {STACK}-{MARK} corpus")
    ledger = driver.create("Ledger", "ledger", LEDGER)
    with pytest.raises(Failed, match=r"cancelling item/\d+ .*run the command again") as refused:
        driver.delete(ledger)
    assert onlooker.open_count() == 1
    (words,) = {each for each in str(refused.value).split("'") if each.startswith("slcli ")}
    done = CliRunner().invoke(core.cli, ["-y", "-C", str(account_emulator.config_file), *words.split()[1:]])
    assert done.exit_code == 0, done.output
    driver.delete(ledger)
    assert onlooker.open_count() == 0


def test_what_bears_another_mark_or_none_is_nobodys_business(driver, onlooker: Onlooker, account_emulator):
    for kind, wanted in OF_ANOTHER_MARK:
        account_emulator.order_in_portal(kind, datacenter="lon06", **wanted)
    driver.delete(driver.create("Ledger", "ledger", LEDGER))
    assert onlooker.open_count() == 0
    assert account_emulator.status()["open_billing_items"] == len(OF_ANOTHER_MARK)
