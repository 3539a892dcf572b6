"""Changes in place, drift, vanished resources, and orders that wait for a person; imports are refused."""

import pytest

from tests.integration.provider_cluster import KEY, Cluster, Onlooker, group, guest
from tests.integration.provider_driver import Driver, Failed, Resource
from tests.integration.until import until


def attached(onlooker, guest_id: str) -> list[list[int]]:
    """Return the groups on the public and on the private interface."""
    sides = ("primaryNetworkComponent", "primaryBackendNetworkComponent")
    mask = f"mask[{','.join(f'{side}[securityGroupBindings[securityGroup[id]]]' for side in sides)}]"
    found = onlooker.client.call("Virtual_Guest", "getObject", id=int(guest_id), mask=mask)
    return [[each["securityGroup"]["id"] for each in found[side]["securityGroupBindings"]] for side in sides]


def test_groups_are_exchanged_on_the_running_guest(driver, onlooker):
    cluster = Cluster(driver, ("gpu-0",))
    before = cluster.guests["gpu-0"]
    second = driver.create("SecurityGroup", "second", group("second"))
    wanted = {
        **before.inputs,
        "publicSecurityGroupIds": [second.id],
        "privateSecurityGroupIds": [cluster.group.id, second.id],
    }
    after = driver.update(before, wanted)
    assert after.id == before.id
    assert attached(onlooker, after.id) == [[int(second.id)], [int(cluster.group.id), int(second.id)]]
    assert "Restarts" not in driver.said()
    assert driver.read(after).inputs == wanted


def test_the_diff_says_that_an_interfaces_first_group_restarts_the_guest(driver, onlooker):
    made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    first = driver.create("SecurityGroup", "group", group("members"))
    driver.update(made, guest("gpu-0", privateSecurityGroupIds=[first.id]))
    assert attached(onlooker, made.id) == [[], [int(first.id)]]
    assert f"Restarts guest {made.id}" in driver.said()


def test_refresh_reports_drift_and_up_reverts_it(driver, onlooker):
    cluster = Cluster(driver, ("gpu-0",))
    made, group_id = cluster.guests["gpu-0"], int(cluster.group.id)
    component = onlooker.public_interface(made.id)
    onlooker.client.call("Virtual_Guest", "setPrivateNetworkInterfaceSpeed", 100, id=int(made.id))
    onlooker.client.call("Virtual_Guest", "setTags", "theirs", id=int(made.id))
    onlooker.client.call("Network_SecurityGroup", "detachNetworkComponents", [component], id=group_id)
    read = driver.read(made)
    changed = {key for key, value in read.inputs.items() if made.inputs.get(key) != value}
    assert changed == {"portSpeedMbps", "tags", "publicSecurityGroupIds"}
    assert (read.inputs["portSpeedMbps"], read.inputs["tags"]) == (100, ["theirs"])
    back = driver.update(read, made.inputs)
    assert driver.read(back).inputs == made.inputs


@pytest.mark.parametrize("kind", ["Ledger", "SshKey", "SecurityGroup", "VirtualGuest"])
def test_nothing_is_imported_as_an_up_takes_over_what_bears_the_mark(driver, onlooker, kind):
    ordered = onlooker.order("gpu-0")
    with pytest.raises(Failed, match=r"importing x \(.*microcluster refuses `pulumi import`. `pulumi up` takes over"):
        driver.read(Resource(kind, "x", ordered, {}, {}))


SERVICES = {
    "SshKey": "Security_Ssh_Key",
    "SecurityGroup": "Network_SecurityGroup",
    "VirtualGuest": "Virtual_Guest",
}
INPUTS = {"SshKey": KEY, "SecurityGroup": group("members"), "VirtualGuest": guest("gpu-0")}
CHANGED = {
    "SshKey": {**KEY, "label": "another"},
    "SecurityGroup": {**group("members"), "description": "another"},
    "VirtualGuest": guest("gpu-0", tags=["another"]),
}


def take_away(onlooker: Onlooker, kind: str, object_id: str) -> None:
    onlooker.client.call(SERVICES[kind], "deleteObject", id=int(object_id))
    until(lambda: kind != "VirtualGuest" or not onlooker.guests())


@pytest.mark.parametrize("kind", SERVICES)
def test_a_vanished_resource_fails_its_update_reads_as_gone_and_is_recreated(driver, onlooker, kind):
    made = driver.create(kind, kind, INPUTS[kind])
    take_away(onlooker, kind, made.id)
    with pytest.raises(Failed, match="pulumi up --refresh"):
        driver.update(made, CHANGED[kind])
    assert driver.read(made) is None
    driver.delete(made)
    assert onlooker.open_count() == 0
    again = driver.create(kind, kind, INPUTS[kind])
    assert again.id != made.id
    driver.delete(again)


@pytest.fixture
def waiting(emulator_with):
    """An account whose orders wait for a person, and a guest that a create gave up waiting for."""
    emulator = emulator_with(approval="pending")
    driver = Driver(emulator.config_file)
    with pytest.raises(
        Failed, match=r"not billed before it is approved: .*its order [0-9]+ is PENDING_APPROVAL"
    ) as late:
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"), timeout=30)
    yield emulator, driver, late.value.unfinished
    driver.leave()


def test_an_order_that_waits_for_approval_is_kept_reported_adopted_and_continued(waiting):
    emulator, driver, known = waiting
    with pytest.raises(Failed, match="its order [0-9]+ is PENDING_APPROVAL"):
        driver.read(known)
    with pytest.raises(Failed, match="PENDING_APPROVAL") as again:
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"), timeout=30)
    assert again.value.unfinished.id == known.id
    (order,) = emulator.status()["waiting"]
    assert "PENDING_APPROVAL" in driver.said()
    emulator._admin(f"orders/{order['id']}/approve", b"")
    made = driver.update(known, guest("gpu-0"))
    assert (made.id, bool(made.outputs["provisionDate"])) == (known.id, True)
    assert len(Onlooker(emulator.config_file).guests()) == 1


def test_an_order_that_waits_for_a_person_is_cancelled_by_a_delete(waiting):
    emulator, driver, known = waiting
    driver.delete(known)
    assert emulator.status()["waiting"] == []
    assert Onlooker(emulator.config_file).open_count() == 0
