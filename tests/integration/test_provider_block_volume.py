"""BlockVolume: ordered once, lent to guests, never forgotten, and proven to be billed no more."""

from __future__ import annotations

import threading

import pytest

from providers.softlayer import block_volume
from providers.softlayer.waiting import Patience
from tests.integration.lossy_wire import lossy_wire
from tests.integration.provider_cluster import LEDGER, MARK, Onlooker
from tests.integration.provider_driver import Driver, Failed, Resource
from tests.integration.until import until

DATA = {"mark": MARK, "name": "data", "datacenter": "lon06", "sizeGb": 500, "iopsPerGb": 4, "hourly": True}
NOTES = f"microcluster test-{MARK}: data"
SHOWN = "mask[id,notes,capacityGb,allowedVirtualGuests[id],billingItem[id,cancellationDate,orderItem[order[id]]]]"


@pytest.fixture
def driver(account_emulator, onlooker):
    with Driver(account_emulator.config_file) as running:
        yield running


def volumes(onlooker):
    """The billed volumes of the account."""
    listed = onlooker.client.call("Account", "getNetworkStorage", mask=SHOWN)
    return [each for each in listed if each.get("billingItem")]


def order_by_hand(onlooker, **changes):
    """Order a volume as somebody else would, and return its id."""
    wanted = {"storage_type": "endurance", "location": "lon06", "size": 500, "os_type": "LINUX", "tier_level": 4}
    block = onlooker.block
    receipt = block.order_block_volume(**wanted, hourly_billing_flag=True)
    (made,) = block.list_block_volumes(order=receipt["orderId"], mask="mask[id]")
    if changes:
        onlooker.client.call("Network_Storage", "editObject", changes, id=made["id"])
    return str(made["id"])


def test_a_volume_is_ordered_once_ready_marked_and_hourly_only_because_that_is_asked(driver, onlooker):
    made = driver.create("BlockVolume", "data", DATA)
    (volume,) = volumes(onlooker)
    assert (made.id, volume["notes"], volume["capacityGb"]) == (str(volume["id"]), NOTES, 500)
    assert made.outputs["billing"].startswith("hourly, until it is deleted: 0.15 USD")
    assert made.outputs["orderId"] == str(volume["billingItem"]["orderItem"]["order"]["id"])
    assert made.outputs["targetAddress"].startswith("161.26.")
    assert driver.read(made).inputs == DATA


@pytest.mark.parametrize("speed", [{"iops": 3000}, {"iopsPerGb": 0.25}, {"iopsPerGb": 10, "sizeGb": 4000}])
def test_every_kind_that_is_sold_is_ordered_as_it_was_asked_for(driver, speed):
    wanted = {**{key: value for key, value in DATA.items() if key != "iopsPerGb"}, **speed}
    made = driver.create("BlockVolume", "data", wanted)
    assert driver.read(made).inputs == wanted


def test_a_preview_warns_of_the_month_that_a_volume_costs_and_calls_nobody(tmp_path):
    with Driver(tmp_path / "no-such.conf") as offline:
        monthly = {**DATA, "hourly": False}
        shown = offline.create("BlockVolume", "data", monthly, preview=True)
        assert shown.outputs["billing"].startswith("monthly, at least one whole month: 98.50 USD (estimate")
        until(lambda: "monthly, at least one whole month: 98.50 USD" in offline.said())
        hourly = offline.create("BlockVolume", "other", DATA, preview=True)
        assert hourly.outputs["billing"].startswith("hourly")
        assert offline.said().count("It will be billed") == 1


def test_a_second_create_goes_on_with_the_volume_of_the_first(driver, onlooker):
    first = driver.create("BlockVolume", "data", DATA)
    again = driver.create("BlockVolume", "data", DATA)
    assert again.id == first.id
    assert len(volumes(onlooker)) == 1


def test_a_volume_that_differs_is_not_adopted_and_nothing_is_ordered(driver, onlooker):
    driver.create("BlockVolume", "data", DATA)
    with pytest.raises(Failed, match="sizeGb is 500 there and 1000 here.*Nothing was touched"):
        driver.create("BlockVolume", "data", {**DATA, "sizeGb": 1000})
    assert len(volumes(onlooker)) == 1


def test_an_order_whose_answer_got_lost_is_found_and_not_sent_again(account_emulator, onlooker, tmp_path):
    stranger = order_by_hand(onlooker)
    with lossy_wire(account_emulator.endpoint, {"placeOrder": 1}) as wire:
        with Driver(wire.config(account_emulator.config_file, tmp_path)) as driver:
            made = driver.create("BlockVolume", "data", DATA)
        assert wire.calls.count("placeOrder") == 1
    assert made.id != stranger
    assert {str(each["id"]): each.get("notes") or "" for each in volumes(onlooker)} == {stranger: "", made.id: NOTES}


def test_an_order_that_never_arrived_is_sent_again_only_after_the_lists_have_been_looked_through(
    account_emulator, onlooker, tmp_path
):
    with lossy_wire(account_emulator.endpoint, {"placeOrder": 1}) as wire:
        wire.before_reaching.add("placeOrder")
        with Driver(wire.config(account_emulator.config_file, tmp_path)) as driver:
            driver.create("BlockVolume", "data", DATA)
        assert wire.calls.count("placeOrder") == 2
    assert len(volumes(onlooker)) == 1


def test_a_run_that_dies_after_its_order_leaves_a_volume_that_the_next_run_takes_up(
    account_emulator, onlooker, tmp_path
):
    with lossy_wire(account_emulator.endpoint, {"editObject": 1000}) as wire:
        wire.before_reaching.add("editObject")
        config = wire.config(account_emulator.config_file, tmp_path)
        dying = Driver(config, time_scale=1.0)
        thread = threading.Thread(target=lambda: suppressed(dying.create, "BlockVolume", "data", DATA), daemon=True)
        thread.start()
        until(lambda: volumes(onlooker))
        until(lambda: "editObject" in wire.calls)
        dying.kill()
        wire.losses.clear()
        with Driver(config) as driver:
            made = driver.create("BlockVolume", "data", DATA)
        assert wire.calls.count("placeOrder") == 1
    assert [str(each["id"]) for each in volumes(onlooker)] == [made.id]


def suppressed(act, *arguments):
    try:
        act(*arguments)
    except Failed:
        return


def test_a_volume_that_is_not_ready_in_time_is_in_the_state_and_destroy_cancels_it(emulator_with):
    emulator = emulator_with(volume_s=4800.0)
    onlooker = Onlooker(emulator.config_file)
    with Driver(emulator.config_file) as driver:
        with pytest.raises(Failed, match="is ordered, but not ready.*its status is PROVISION_IN_PROGRESS") as late:
            driver.create("BlockVolume", "data", DATA, timeout=40)
        made = late.value.unfinished
        assert volumes(onlooker)[0]["id"] == int(made.id)
        driver.delete(made)
    assert emulator.status()["open_billing_items"] == 0


def test_a_volume_whose_id_changes_is_found_again_by_its_order(emulator_with):
    emulator = emulator_with(volume_id_changes=True, volume_s=3600.0)
    onlooker = Onlooker(emulator.config_file)
    with Driver(emulator.config_file) as driver:
        with pytest.raises(Failed) as late:
            driver.create("BlockVolume", "data", DATA, timeout=20)
        first = late.value.unfinished
        made = driver.update(first, DATA)
        (volume,) = volumes(onlooker)
        assert first.id != made.outputs["volumeId"] == str(volume["id"])
        assert volume["notes"] == NOTES
        driver.delete(made)
    assert volumes(onlooker) == []


def test_guests_are_authorised_and_deauthorised_and_notes_change_in_place(driver, onlooker):
    one, two = onlooker.order("gpu-0"), onlooker.order("gpu-1")
    made = driver.create("BlockVolume", "data", {**DATA, "guestIds": [one]})
    changed = {**DATA, "guestIds": [two], "description": "the corpus"}
    driver.update(made, changed)
    (volume,) = volumes(onlooker)
    assert [str(each["id"]) for each in volume["allowedVirtualGuests"]] == [two]
    assert (str(volume["id"]), volume["notes"]) == (made.id, f"{NOTES}; the corpus")
    assert driver.read(Resource("BlockVolume", "data", made.id, changed, made.outputs)).inputs == changed


def test_deleting_is_proven_and_can_be_repeated(driver, onlooker, account_emulator):
    made = driver.create("BlockVolume", "data", {**DATA, "hourly": False, "guestIds": [onlooker.order("gpu-0")]})
    driver.delete(made)
    assert volumes(onlooker) == []
    driver.delete(made)


def test_a_cancellation_whose_answer_got_lost_is_proven_all_the_same(account_emulator, onlooker, tmp_path):
    wire_that_loses = lossy_wire(account_emulator.endpoint, {"cancelItem": 1})
    with wire_that_loses as wire, Driver(wire.config(account_emulator.config_file, tmp_path)) as driver:
        made = driver.create("BlockVolume", "data", DATA)
        driver.delete(made)
    assert volumes(onlooker) == []


def test_a_volume_that_somebody_cancelled_for_its_anniversary_is_a_failure_with_date_price_and_id(emulator_with):
    emulator = emulator_with(clock_rate=60, volume_s=60.0)
    onlooker = Onlooker(emulator.config_file)
    with Driver(emulator.config_file) as driver:
        made = driver.create("BlockVolume", "data", {**DATA, "hourly": False})
        onlooker.block.cancel_block_volume(int(made.id), immediate=False)
        date = volumes(onlooker)[0]["billingItem"]["cancellationDate"]
        told = driver.read(made)
        with pytest.raises(Failed) as refused:
            driver.delete(made)
    assert told.outputs["ends"] == date
    assert f"volume {made.id}" in str(refused.value)
    assert f"It is still billed at 98.55 USD a month until {date}" in str(refused.value)
    assert "run 'pulumi destroy' again after that date" in str(refused.value)


def test_drift_is_told_and_a_volume_that_is_gone_is_gone(driver, onlooker):
    made = driver.create("BlockVolume", "data", DATA)
    guest = onlooker.order("gpu-0")
    onlooker.client.call("Network_Storage", "editObject", {"notes": "mine now"}, id=int(made.id))
    onlooker.block.authorize_host_to_volume(int(made.id), virtual_guest_ids=[guest])
    drifted = driver.read(made).inputs
    assert drifted == {**DATA, "description": "mine now", "guestIds": [guest]}
    onlooker.block.cancel_block_volume(int(made.id), immediate=True)
    assert driver.read(made) is None


def test_a_volume_whose_notes_somebody_changed_is_cancelled_all_the_same_for_its_order_is_ours(driver, onlooker):
    made = driver.create("BlockVolume", "data", DATA)
    onlooker.client.call("Network_Storage", "editObject", {"notes": "mine now"}, id=int(made.id))
    driver.delete(made)
    assert volumes(onlooker) == []


def test_a_volume_is_imported_by_its_id_and_a_strangers_is_not(driver, onlooker):
    made = driver.create("BlockVolume", "data", {**DATA, "description": "the corpus"})
    imported = driver.read(Resource("BlockVolume", "data", made.id, {}, {}))
    assert imported.inputs == {**DATA, "description": "the corpus", "guestIds": []}
    stranger = order_by_hand(onlooker, notes="microcluster other-1f3a9c42: data")
    with pytest.raises(Failed, match="does not carry the mark of stack test"):
        driver.read(Resource("BlockVolume", "data", stranger, {}, {}))


def test_other_volumes_are_neither_adopted_nor_swept(driver, onlooker):
    bare = order_by_hand(onlooker)
    foreign = order_by_hand(onlooker, notes="microcluster test-1f3a9c43: data")
    made = driver.create("BlockVolume", "data", DATA)
    assert made.id not in (bare, foreign)
    marked = block_volume.marked(onlooker.account.api, MARK)
    assert [str(each["id"]) for each in marked] == [made.id]
    block_volume.close(onlooker.account, foreign, MARK, Patience(5, threading.Event()), print)
    driver.delete(made)
    assert {str(each["id"]) for each in volumes(onlooker)} == {bare, foreign}


def test_no_password_of_a_volume_or_of_a_guest_reaches_state_or_log(driver, onlooker):
    guest = onlooker.order("gpu-0")
    made = driver.create("BlockVolume", "data", {**DATA, "guestIds": [guest]})
    mask = "mask[password,allowedVirtualGuests[allowedHost[credential]]]"
    shown = onlooker.client.call("Network_Storage", "getObject", id=int(made.id), mask=mask)
    secrets = [shown["password"], shown["allowedVirtualGuests"][0]["allowedHost"]["credential"]["password"]]
    written = f"{made.outputs}{driver.read(made)}{driver.said()}"
    assert not any(secret in written for secret in secrets)


def swept(driver):
    """Remove a ledger that nothing but the account knows anything of."""
    ledger = driver.create("Ledger", "ledger", LEDGER)
    driver.delete(ledger)


def test_the_ledger_cancels_what_bears_the_mark_and_leaves_other_volumes_and_vlans_alone(driver, onlooker):
    foreign = order_by_hand(onlooker, notes="microcluster test-1f3a9c43: data")
    bare = order_by_hand(onlooker)
    driver.create("BlockVolume", "data", {**DATA, "hourly": False})
    vlan = driver.create("Vlan", "train", {"mark": MARK, "name": "train", "datacenter": "lon06"})
    assert onlooker.open_count() == 2
    swept(driver)
    assert {str(each["id"]) for each in volumes(onlooker)} == {foreign, bare}
    assert vlan.id not in {str(each["id"]) for each in onlooker.client.call("Account", "getNetworkVlans")}
    assert onlooker.open_count() == 0


@pytest.mark.parametrize("lost", ["placeOrder", "editObject"])
def test_the_ledger_cancels_a_volume_whose_order_died_with_its_run_before_it_got_a_mark(
    account_emulator, onlooker, tmp_path, lost
):
    stranger = order_by_hand(onlooker)
    losses = {"editObject": 1000, lost: 1000}
    with lossy_wire(account_emulator.endpoint, losses) as wire:
        wire.before_reaching.add("editObject")
        config = wire.config(account_emulator.config_file, tmp_path)
        dying = Driver(config, time_scale=1.0)
        threading.Thread(target=suppressed, args=(dying.create, "BlockVolume", "data", DATA), daemon=True).start()
        until(lambda: lost in wire.calls and len(volumes(onlooker)) == 2)
        dying.kill()
        wire.losses.clear()
        with Driver(config) as driver:
            swept(driver)
    assert [str(each["id"]) for each in volumes(onlooker)] == [stranger]


def test_a_volume_that_was_ordered_a_moment_ago_and_is_in_no_list_yet_is_not_ordered_again(emulator_with):
    emulator = emulator_with(list_lag_s=3600.0, volume_s=60.0, clock_rate=400)
    dying = Driver(emulator.config_file, time_scale=1.0)
    threading.Thread(target=suppressed, args=(dying.create, "BlockVolume", "data", DATA), daemon=True).start()
    journal = emulator.state / "home" / "journal" / f"test-{MARK}.jsonl"
    until(lambda: journal.exists() and '"ordered"' in journal.read_text())
    dying.kill()
    with Driver(emulator.config_file, time_scale=0.1) as driver:
        made = driver.create("BlockVolume", "data", DATA)
        assert emulator.status()["open_billing_items"] == 1
        driver.delete(made)
    assert emulator.status()["open_billing_items"] == 0


def test_a_volume_that_no_list_shows_yet_is_not_gone_for_a_refresh_and_not_for_a_destroy(emulator_with):
    emulator = emulator_with(list_lag_s=3600.0, volume_s=60.0, clock_rate=400)
    with Driver(emulator.config_file, time_scale=0.1) as driver:
        with pytest.raises(Failed, match="not in the account's lists yet") as late:
            driver.create("BlockVolume", "data", DATA, timeout=5)
        made = late.value.unfinished
        assert made.id == f"order-{made.outputs['orderId']}"
        with pytest.raises(Failed, match="the account does not show it yet") as unsure:
            driver.read(made)
        assert unsure.value.unfinished.id == made.id
        driver.delete(made)
    assert emulator.status()["open_billing_items"] == 0
