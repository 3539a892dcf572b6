"""Things that vanish behind our back: before an operation, during it, and after it; and orders that wait for a person."""

import pytest

from tests.integration.provider_cluster import KEY, Onlooker, group, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.until import until

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
def test_what_vanished_is_named_by_an_update_reads_as_gone_ends_by_a_delete_and_is_made_anew(driver, onlooker, kind):
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
