"""Other people's things in the same account: seen, and never adopted, changed or cancelled."""

from typing import Any

import pytest

from tests.integration.lossy_wire import lossy_wire
from tests.integration.provider_cluster import DOMAIN, MARK, PUBLIC_KEY, STACK, TAGS, Cluster, Onlooker, guest
from tests.integration.provider_driver import Driver, Resource

STRANGERS = (
    "example.com",
    f"{STACK}-1f3a9c43.microcluster",
    f"other-{MARK}0.microcluster",
    f"{DOMAIN}.example.com",
    f"{MARK}.microcluster",
    f"p100-{MARK}.microcluster",
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
        label = f"{STACK}-{MARK}"
        self._key = self._call("Security_Ssh_Key", "createObject", {"key": OTHER_KEY, "label": label} | notes)["id"]

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
    with lossy_wire(account_emulator.endpoint, {}) as wire:
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


def test_a_sweep_takes_what_bears_the_mark_and_nothing_that_looks_like_it(account_emulator, onlooker, neighbours):
    before, lost = neighbours.shown(), onlooker.order("gpu-0")
    with Driver(account_emulator.config_file) as driver:
        driver.delete(Resource("Ledger", "ledger", "x", {"mark": MARK, "stack": STACK}, {}))
        assert lost in driver.said()
    assert neighbours.shown() == before
    assert lost not in {str(each["id"]) for each in onlooker.billed()}


def test_a_strangers_guest_in_our_group_keeps_it_and_is_named(account_emulator, onlooker):
    stranger = onlooker.order("theirs", "example.com")
    with Driver(account_emulator.config_file) as driver:
        cluster = Cluster(driver, ("gpu-0",))
        component = onlooker.public_interface(stranger)
        onlooker.client.call("Network_SecurityGroup", "attachNetworkComponents", [component], id=int(cluster.group.id))
        driver.delete(cluster.guests["gpu-0"])
        with pytest.raises(Exception, match=rf"guest {stranger} \(theirs.example.com\), not ours"):
            driver.delete(cluster.group, timeout=30)
    mask = "networkComponentBindings[networkComponentId]"
    left = onlooker.client.call("Network_SecurityGroup", "getObject", id=int(cluster.group.id), mask=mask)
    assert [each["networkComponentId"] for each in left["networkComponentBindings"]] == [component]
    onlooker.client.call("Network_SecurityGroup", "detachNetworkComponents", [component], id=int(cluster.group.id))


def test_a_guest_of_ours_that_a_person_ordered_by_hand_without_our_key_is_not_adopted(account_emulator, onlooker):
    by_hand = onlooker.order("gpu-0")
    with (
        Driver(account_emulator.config_file) as driver,
        pytest.raises(Exception, match=f"adopting guest {by_hand} .*holds no host key. Nothing was touched"),
    ):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
