"""Lost answers, other protocols and images: an order is never sent twice, a cancellation always arrives."""

import re
import time

import pytest

from tests.integration.provider_cluster import KEY, LEDGER, SETTLED_S, Cluster, Onlooker, group, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.wire import wire_to

PRIVATE_IMAGE, PUBLIC_IMAGE = "2263543", "2263700"


@pytest.fixture
def driver(account_emulator, onlooker, tmp_path):
    """A provider with a journal of its own."""
    home = {"MICROCLUSTER_HOME": str(tmp_path / "home")}
    with Driver(account_emulator.config_file, environment=home) as running:
        yield running


def test_an_order_whose_answer_got_lost_is_found_and_not_sent_again(driver, account_emulator, onlooker):
    account_emulator.script("Virtual_Guest::createObject", "lost_reply")
    made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert [str(each["id"]) for each in onlooker.guests()] == [made.id]
    assert made.outputs["hostKey"].startswith("ssh-ed25519 ")


def test_an_order_that_never_arrived_is_sent_again_by_the_next_command(driver, account_emulator, onlooker):
    account_emulator.script("Virtual_Guest::createObject", "lost_call")
    began = time.monotonic()
    with pytest.raises(Failed, match="The account shows none, so nothing was ordered. Run the command again"):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert time.monotonic() - began > SETTLED_S * driver.time_scale
    assert onlooker.guests() == []
    made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert [str(each["id"]) for each in onlooker.guests()] == [made.id]


def in_step(emulator) -> Driver:
    """Start a provider for which a second is as long as for the account."""
    return Driver(emulator.config_file, 1 / emulator.clock_rate)


def ordered(emulator) -> int:
    """Count what was ever ordered, as the account's owner would."""
    return len(Onlooker(emulator.config_file).client.call("Account", "getOrders"))


def test_an_order_carried_out_and_listed_late_makes_one_guest(emulator_with):
    emulator = emulator_with(clock_rate=100, provisioning_s=5.0, list_lag_s=115.0)
    emulator.script("Virtual_Guest::createObject", "held", seconds=130)
    with in_step(emulator) as driver:
        made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert made.outputs["provisionDate"]
    assert ordered(emulator) == 1


@pytest.mark.parametrize(
    ("late", "trace", "ahead_h"),
    [
        (["getVirtualGuests"], "billing item [0-9]+ of gpu-0 is open", 0),
        (["getVirtualGuests", "getAllTopLevelBillingItems"], "its order [0-9]+ is (APPROVED|COMPLETED)", 0),
        (["getVirtualGuests", "getAllTopLevelBillingItems"], "its order [0-9]+ is (APPROVED|COMPLETED)", 6),
    ],
)
def test_an_order_on_the_bill_or_order_list_is_not_repeated(emulator_with, late, trace, ahead_h):
    emulator = emulator_with(clock_rate=100, provisioning_s=5.0)
    emulator.move_clock(-3600 * ahead_h)
    emulator.script("Virtual_Guest::createObject", "lost_reply")
    for method in late:
        emulator.script(f"Account::{method}", "stale", seconds=500, times=10_000)
    with in_step(emulator) as driver:
        made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
        assert re.search(f"{trace}, and the account does not show what was ordered", driver.said())
    assert made.outputs["provisionDate"]
    assert ordered(emulator) == 1


def test_a_billed_guest_that_is_never_listed_ends_the_command_without_orders(emulator_with):
    emulator = emulator_with(clock_rate=100)
    Onlooker(emulator.config_file).order("gpu-0")
    emulator.script("Account::getVirtualGuests", "stale", seconds=3600, times=10_000)
    said = "billing item [0-9]+ of gpu-0 is open. Nothing is ordered a second time while that stands. Ask the vendor"
    with in_step(emulator) as driver, pytest.raises(Failed, match=said):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert ordered(emulator) == 1


def test_keys_and_groups_whose_answers_got_lost_are_made_once(driver, account_emulator, onlooker):
    for service in ("Security_Ssh_Key", "Network_SecurityGroup"):
        account_emulator.script(f"{service}::createObject", "lost_reply")
    driver.create("SshKey", "key", KEY)
    assert len(onlooker.client.call("Account", "getSshKeys")) == 1
    driver.create("SecurityGroup", "group", group("members"))
    groups = onlooker.client.call("Network_SecurityGroup", "getAllObjects")
    assert len([each for each in groups if each["name"].startswith("test-")]) == 1


def test_a_cancellation_whose_answer_got_lost_is_proven_all_the_same(driver, account_emulator, onlooker):
    made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    account_emulator.script("Virtual_Guest::deleteObject", "lost_reply")
    driver.delete(made)
    assert onlooker.open_count() == 0


def test_the_whole_way_works_over_rest(account_emulator, onlooker, tmp_path):
    conf = tmp_path / "rest.conf"
    conf.write_text(account_emulator.config_file.read_text().replace("/xmlrpc/", "/rest/"))
    with Driver(conf) as driver:
        cluster = Cluster(driver, ("gpu-0",))
        assert cluster.guests["gpu-0"].outputs["provisionDate"]
        cluster.destroy()
    assert onlooker.open_count() == 0


def with_image(image_id: str) -> dict:
    return {key: value for key, value in guest("gpu-0", imageId=image_id).items() if key != "os"}


def test_an_image_and_its_disks_come_in_one_order(driver, onlooker):
    wanted = with_image(PRIVATE_IMAGE)
    made = driver.create("VirtualGuest", "gpu-0", wanted)
    assert driver.read(made).inputs == wanted
    assert made.outputs["hostKey"].startswith("ssh-ed25519 ")
    driver.delete(made)
    assert onlooker.open_count() == 0


@pytest.mark.parametrize("cancelled_by", ["the ledger", "a person"])
def test_a_receipt_without_a_guest_repeats_no_order_and_blocks_no_ledger(
    driver, account_emulator, onlooker, tmp_path, cancelled_by
):
    account_emulator.script("Product_Order::placeOrder", "bare_receipt")
    ledger = driver.create("Ledger", "ledger", LEDGER)
    made = driver.create("VirtualGuest", "gpu-0", with_image(PUBLIC_IMAGE))
    assert [str(each["id"]) for each in onlooker.guests()] == [made.id]
    (journal,) = (tmp_path / "home" / "journal").glob("*.jsonl")
    kept = [line for line in journal.read_text().splitlines() if '"event": "ordered"' not in line]
    journal.write_text("".join(f"{line}\n" for line in kept))  # As if it had been killed before it looked.
    if cancelled_by == "a person":
        onlooker.client.call("Virtual_Guest", "deleteObject", id=int(made.id))
    driver.delete(ledger)
    assert "open billing items with mark" in driver.said()
    assert onlooker.open_count() == 0


def test_after_an_unknown_refusal_the_order_is_searched_and_not_repeated(account_emulator, onlooker, tmp_path):
    pods = onlooker.client.call("Network_Pod", "getAllObjects")
    elsewhere = next(pod for pod in pods if not pod["name"].startswith(LEDGER["datacenter"]))
    with (
        wire_to(account_emulator.endpoint) as wire,
        Driver(wire.config(account_emulator.config_file, tmp_path)) as driver,
        pytest.raises(Failed, match="is not in datacenter.*The account shows none, so nothing was ordered"),
    ):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0", backendRouterId=str(elsewhere["backendRouterId"])))
    assert wire.calls.count("createObject") == 1
    assert onlooker.guests() == []


@pytest.mark.parametrize("code", ["new", "old"])
def test_a_full_datacenter_names_others_with_the_flavor_and_the_command(emulator_with, code):
    full = emulator_with(capacity={"lon06/AC1_16X120X100": 0}, capacity_code=code)
    full.script("Product_Order::verifyOrder", "capacity")
    said = (
        r"lon06 has no room for AC1_16X120X100 now; it is also sold in \w+.*pulumi config set --path "
        r"microcluster:cluster.datacenter \w+ -s test"
    )
    with Driver(full.config_file) as driver:
        with pytest.raises(Failed, match=said) as refused:
            driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
        with pytest.raises(Failed, match=f"Nothing was ordered. {said}"):
            driver.create("Ledger", "ledger", LEDGER)
    assert refused.value.unfinished is None
    assert full.status()["machines"] == []
