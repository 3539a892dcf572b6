"""The provider against an account: order once, adopt, finish, cancel, prove."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from microcluster.accounts.softlayer import billing, specs, views
from microcluster.core.ssh_key import KeyPair
from tests.integration.provider_cluster import (
    KEY,
    LEDGER,
    MARK,
    OWNER,
    TAGS,
    Cluster,
    Onlooker,
    group,
    guest,
)
from tests.integration.provider_driver import Driver, Failed, Resource
from tests.integration.until import until
from tests.integration.wire import wire_to


@pytest.fixture
def slow(emulator_with):
    """An account that takes some five seconds to build a guest."""
    return emulator_with(clock_rate=60)


def test_a_cluster_comes_up_ready_and_goes_without_leaving_anything_billed(driver, onlooker):
    cluster = Cluster(driver)
    outputs = [made.outputs for made in cluster.guests.values()]
    assert all(each["publicIp"] and each["privateIp"] and each["provisionDate"] for each in outputs)
    assert len({each["hostKey"] for each in outputs}) == 2
    charged = sum(each.per_hour for each in onlooker.account.charges(OWNER) if each.is_open)
    assert float(cluster.ledger.outputs["pricePerHour"]) == float(charged)
    (first, _) = onlooker.billed()
    assert {reference["tag"]["name"] for reference in first["tagReferences"]} == set(TAGS)
    cluster.destroy()
    assert onlooker.billed() == []
    assert onlooker.open_count() == 0
    assert onlooker.client.call("Account", "getSshKeys") == []
    assert f"open billing items with mark {MARK}: 0" in driver.said()


def test_an_untouched_cluster_shows_no_drift_and_no_private_key(driver):
    cluster = Cluster(driver, ("gpu-0",))
    made = [cluster.ledger, cluster.key, cluster.group, cluster.guests["gpu-0"]]
    read = [driver.read(each) for each in made]
    assert read == made
    shown = f"{made} {read} {driver.said()}"
    assert "ssh-ed25519" in shown
    assert "PRIVATE" not in shown and "ed25519_private" not in shown


def test_an_active_guest_that_differs_is_refused_and_not_changed(driver, onlooker):
    data = specs.cloud_config(KeyPair.fresh(), OWNER, "gpu-0")
    onlooker.order("gpu-0", user_data=data, blockDevices=[])
    until(lambda: is_ready(onlooker.account.guest_list.under(OWNER)[0]))
    with pytest.raises(Failed, match=r"dataDisksGb is \[\] there and \[2000\] here"):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert len(onlooker.billed()) == 1


def test_several_active_guests_of_one_name_are_refused_and_listed(driver, onlooker):
    ids = [onlooker.order("gpu-0"), onlooker.order("gpu-0")]
    with pytest.raises(Failed) as refused:
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert all(each in str(refused.value) for each in ids)
    assert len(onlooker.billed()) == 2


def test_a_late_guest_is_a_partial_failure_that_the_next_update_finishes(slow):
    onlooker = Onlooker(slow.config_file)
    with Driver(slow.config_file, 0.001) as driver, pytest.raises(Failed, match="is ordered and billed") as late:
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"), timeout=1)
    known = late.value.unfinished
    assert known.id == str(onlooker.guests()[0]["id"])
    with Driver(slow.config_file) as driver:
        with pytest.raises(Failed, match="is not ready: in transaction") as read:
            driver.read(known)
        assert read.value.unfinished.id == known.id
        made = driver.update(known, guest("gpu-0"))
    assert made.outputs["provisionDate"]
    assert made.outputs["hostKey"] == known.outputs["hostKey"]
    assert len(onlooker.guests()) == 1


def test_a_guest_has_its_tags_while_it_is_built(emulator_with):
    never_ready = emulator_with(provisioning_s=1e6)
    onlooker = Onlooker(never_ready.config_file)
    with Driver(never_ready.config_file) as driver, ThreadPoolExecutor(1) as pool:
        creating = pool.submit(driver.create, "VirtualGuest", "gpu-0", guest("gpu-0"))
        until(
            lambda: {each["tag"]["name"] for found in onlooker.guests() for each in found["tagReferences"]} == set(TAGS)
        )
        driver.cancel()
        with pytest.raises(Failed, match="stopped on request"):
            creating.result(30)


def test_cancel_ends_a_wait_at_once_and_the_id_is_recorded(emulator_with):
    slow = emulator_with(provisioning_s=1e6)
    onlooker = Onlooker(slow.config_file)
    driver = Driver(slow.config_file, time_scale=20)  # The shortest pause is twenty seconds.
    with ThreadPoolExecutor(1) as pool:
        creating = pool.submit(driver.create, "VirtualGuest", "gpu-0", guest("gpu-0"))
        until(onlooker.guests)
        began = time.monotonic()
        driver.cancel()
        with pytest.raises(Failed, match="stopped on request") as stopped:
            creating.result(30)
    assert time.monotonic() - began < 8
    assert stopped.value.unfinished.id == str(onlooker.guests()[0]["id"])
    with pytest.raises(Failed, match="nothing was ordered"):
        driver.create("VirtualGuest", "gpu-1", guest("gpu-1"))
    driver.leave()


def test_a_delete_past_its_time_names_the_price_and_the_next_waits(slow):
    onlooker = Onlooker(slow.config_file)
    made = Resource("VirtualGuest", "gpu-0", onlooker.order("gpu-0"), guest("gpu-0"), {})
    said = rf"cancelling guest {made.id}: .*still billed at [0-9.]+ USD an hour.*pulumi destroy"
    with Driver(slow.config_file, time_scale=0.001) as driver, pytest.raises(Failed, match=said):
        driver.delete(made, timeout=1)
    with Driver(slow.config_file) as driver:
        driver.delete(made)
        assert "has to end first" in driver.said()
    assert onlooker.open_count() == 0


def test_a_guest_cancelled_for_its_anniversary_fails_with_date_and_id(emulator_with):
    emulator = emulator_with()
    onlooker = Onlooker(emulator.config_file)
    monthly = onlooker.order("gpu-0", hourlyBillingFlag=False)
    until(lambda: is_ready(onlooker.account.guest_list.under(OWNER)[0]))
    item = onlooker.guests()[0]["billingItem"]["id"]
    onlooker.client.call("Billing_Item", "cancelItem", False, True, "", "", id=item)
    date = onlooker.client.call("Billing_Item", "getObject", id=item)["cancellationDate"]
    said = rf"cancelling guest {monthly} .*cancelled before, for {date}.*It is still billed at [0-9.]+ USD a month\."
    with Driver(emulator.config_file) as driver, pytest.raises(Failed, match=said):
        driver.delete(Resource("VirtualGuest", "gpu-0", monthly, guest("gpu-0"), {}))


def test_a_ledger_refuses_what_the_account_would_not_order(driver):
    with pytest.raises(Failed, match="verifying the order of 2 x AC1_16X120X100 in dal10: .*Nothing was ordered"):
        driver.create("Ledger", "ledger", {**LEDGER, "datacenter": "dal10"})


def test_a_ledgers_router_stays_when_the_cluster_grows(driver):
    ledger = driver.create("Ledger", "ledger", LEDGER)
    grown = driver.update(ledger, {**LEDGER, "nodes": 4})
    assert grown.outputs["backendRouterId"] == ledger.outputs["backendRouterId"]
    assert float(grown.outputs["pricePerHour"]) == 2 * float(ledger.outputs["pricePerHour"])


def test_state_of_another_account_is_refused_before_anything_is_touched(driver, onlooker):
    cluster = Cluster(driver, ("gpu-0",))
    for made in (cluster.ledger, cluster.key, cluster.group, cluster.guests["gpu-0"]):
        foreign = replace(made, outputs={**made.outputs, "accountId": "999"})
        for action in (driver.delete, driver.read):
            with pytest.raises(Failed, match="the state belongs to account 999, the key is for account"):
                action(foreign)
    assert len(onlooker.billed()) == 1


def test_a_wrong_key_is_a_sentence_that_does_not_show_it(account_emulator, tmp_path):
    wrong = tmp_path / "wrong.conf"
    text = account_emulator.config_file.read_text()
    key = next(line.split("=")[1].strip() for line in text.splitlines() if line.startswith("api_key"))
    wrong.write_text(text.replace(f"api_key = {key}", "api_key = not-the-key-of-this-account"))
    with Driver(wrong) as driver, pytest.raises(Failed, match="the API refuses this key") as refused:
        driver.create("Ledger", "ledger", LEDGER)
    assert "not-the-key" not in str(refused.value)


def test_our_own_key_is_adopted(driver):
    first = driver.create("SshKey", "key", KEY)
    assert driver.create("SshKey", "key", KEY).id == first.id


def test_a_groups_rules_are_changed_in_place(driver, onlooker):
    made = driver.create("SecurityGroup", "group", group("members"))
    changed = {**group("members"), "rules": [{"direction": "egress"}]}
    driver.update(made, changed)
    shown = onlooker.client.call("Network_SecurityGroup", "getObject", id=int(made.id), mask="rules[direction]")
    assert [rule["direction"] for rule in shown["rules"]] == ["egress"]


def test_a_cancelled_guest_keeps_its_firewall_until_its_group_is_removed(
    emulator_with,
):
    emulator = emulator_with(reclaim_s=1e9)
    with Driver(emulator.config_file) as driver:
        cluster = Cluster(driver, ("gpu-0",))
        driver.delete(cluster.guests["gpu-0"])
        (left,) = Onlooker(emulator.config_file).account.guest_list.under(OWNER)
        assert views.groups(left, "primaryNetworkComponent") == [cluster.group.id]
        driver.delete(cluster.group)
        assert driver.read(cluster.group) is None


def test_sixty_four_creates_at_once_make_sixty_four_guests_and_answer_checks(emulator_with):
    emulator = emulator_with(
        instance_limit=64, private_subnets=["10.113.0.0/24", "10.113.1.0/24"], public_subnet="198.51.100.0/24"
    )
    onlooker = Onlooker(emulator.config_file)
    names = [f"gpu-{each}" for each in range(64)]
    with Driver(emulator.config_file, 0.2) as driver, ThreadPoolExecutor(64) as pool:
        creating = [pool.submit(driver.create, "VirtualGuest", name, guest(name)) for name in names]
        began = time.monotonic()
        assert driver.create("VirtualGuest", "x", guest("x"), preview=True).outputs
        assert time.monotonic() - began < 10
        made = [each.result() for each in creating]
        assert len({each.id for each in made}) == 64
        assert sorted(each["hostname"] for each in onlooker.billed()) == sorted(names)
        list(pool.map(driver.delete, made))
    assert onlooker.open_count() == 0


def calls_of(emulator, folder, machines: int) -> Counter[str]:
    """Count the calls of a whole life of a cluster: made, read once, destroyed."""
    with wire_to(emulator.endpoint) as wire:
        with Driver(wire.config(emulator.config_file, folder)) as driver:
            cluster = Cluster(driver, tuple(f"gpu-{rank}" for rank in range(machines)))
            for made in cluster.guests.values():
                driver.read(made)
            cluster.destroy()
        return Counter(wire.calls)


def test_one_more_machine_costs_at_most_twelve_calls_until_its_proof(emulator_with, tmp_path):
    emulator = emulator_with(instance_limit=64)
    one, eight = (calls_of(emulator, tmp_path, machines) for machines in (1, 8))
    polls = [counted.pop("getVirtualGuests") for counted in (one, eight)]
    assert eight.total() - one.total() <= 7 * 12, eight
    assert polls[1] < 5 * polls[0], "all machines share one poller: how often it asks depends on time alone"


def network_of(onlooker: Onlooker, guest_id: str) -> tuple[str, str]:
    """Return the private VLAN and the router of a guest."""
    side = "primaryBackendNetworkComponent"
    mask = f"mask[{side}[networkVlan[id,primaryRouter[id]]]]"
    vlan = onlooker.client.call("Virtual_Guest", "getObject", id=int(guest_id), mask=mask)[side]["networkVlan"]
    return str(vlan["id"]), str(vlan["primaryRouter"]["id"])


def test_a_guest_is_ordered_into_the_named_vlan_and_reads_without_drift(driver, onlooker):
    vlan, router = network_of(onlooker, onlooker.order("first", "other-00000000.microcluster"))
    ledger = driver.create("Ledger", "ledger", {**LEDGER, "privateVlanId": vlan})
    assert ledger.outputs["backendRouterId"] == router
    # Guests that name no place land behind the routers in turn: of two, one would stand elsewhere.
    made = [driver.create("VirtualGuest", name, guest(name, privateVlanId=vlan)) for name in ("gpu-0", "gpu-1")]
    assert {network_of(onlooker, each.id) for each in made} == {(vlan, router)}
    assert driver.read(made[0]).inputs == made[0].inputs


def test_an_order_is_verified_with_the_vlan_in_it(onlooker):
    vlan, _ = network_of(onlooker, onlooker.order("first", "other-00000000.microcluster"))
    verified = billing.verify(
        onlooker.account.api, [specs.GuestSpec.model_validate(guest("gpu-0", privateVlanId=vlan))]
    )
    (echoed,) = verified["virtualGuests"]
    assert echoed["primaryBackendNetworkComponent"] == {"networkVlan": {"id": int(vlan)}}


def is_ready(guest) -> bool:
    return views.unready(guest) is None
