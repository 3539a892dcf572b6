"""What changes in place, what drift shows, and that nothing is imported."""

import pytest

from tests.integration.provider_cluster import Cluster, group, guest
from tests.integration.provider_driver import Failed, Resource


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


def test_the_diff_says_that_the_first_group_of_an_interface_restarts_the_guest(driver, onlooker):
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
    with pytest.raises(Failed, match=r"importing x \(.*nothing is imported. 'pulumi up' takes over by its mark"):
        driver.read(Resource(kind, "x", ordered, {}, {}))
