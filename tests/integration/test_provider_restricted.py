"""A user who may order and does not see what was ordered: nothing is ordered twice, and nothing is called gone."""

import time
import xmlrpc.client

import pytest

from microcluster.accounts.softlayer import api
from tests.integration.provider_cluster import LEDGER, OWNER, PUBLIC_KEY, SETTLED_S, Cluster, Onlooker, guest
from tests.integration.provider_driver import Driver, Failed, Resource
from tests.integration.wire import wire_to

TIME_SCALE = 0.02
UNSEEN = xmlrpc.client.Fault("SoftLayer_Exception_ObjectNotFound", "Unable to find object with id of '101'.")
HIDDEN = {
    "Virtual_Guest::getObject": UNSEEN,
    "Account::getVirtualGuests": [],
    "Account::getAllTopLevelBillingItems": [],
    "Account::getOrders": [],
    "Account::getCurrentUser": {"id": 7, "permissions": [{"keyName": "SERVER_ADD"}]},
}


@pytest.fixture
def wire(account_emulator, onlooker):
    with wire_to(account_emulator.endpoint) as running:
        running.says = dict(HIDDEN)
        yield running


@pytest.fixture
def driver(wire, account_emulator, tmp_path):
    with Driver(wire.config(account_emulator.config_file, tmp_path), TIME_SCALE) as running:
        yield running


@pytest.fixture
def limited_to(emulator_with, tmp_path):
    """Start an account with a user who has these rights; return it and that user's file."""

    def start(rights):
        emulator = emulator_with(restricted_user="limited", restricted_permissions=list(rights))
        limited = tmp_path / "limited.conf"
        limited.write_text(emulator.config_file.read_text().replace("username = local", "username = limited"))
        return emulator, limited

    return start


def test_an_accepted_order_that_its_user_cannot_see_fails_all_that_follows(driver, wire, onlooker):
    asked = "Account::getCurrentUser"
    wire.says[asked] = lambda: HIDDEN[asked] if "createObject" in wire.calls else {"id": 7, "isMasterUserFlag": True}
    with pytest.raises(Failed, match="is ordered and billed: .*may run and be billed") as late:
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    known = late.value.unfinished
    assert known.id == str(onlooker.guests()[0]["id"])
    time.sleep(SETTLED_S * TIME_SCALE)
    for act in (
        lambda: driver.create("VirtualGuest", "gpu-0", guest("gpu-0")),
        lambda: driver.read(known),
        lambda: driver.delete(known),
        lambda: driver.delete(Resource("Ledger", "ledger", "x", LEDGER, {})),
    ):
        with pytest.raises(Failed, match=r"may run and be billed, as .*\(ACCESS_ALL_GUEST\)"):
            act()
    assert wire.calls.count("createObject") == 1


def test_a_ledger_without_its_journal_does_not_call_hidden_guests_clean(driver, onlooker):
    onlooker.order("gpu-0")
    with pytest.raises(Failed, match="proving that nothing is billed any more: .*does not see may run and be billed"):
        driver.delete(Resource("Ledger", "ledger", "x", LEDGER, {}))


def test_a_user_who_does_not_see_guests_removes_no_key(driver, onlooker):
    key = {"key": PUBLIC_KEY, "label": "key", "notes": f"microcluster {OWNER}"}
    made = onlooker.client.call("Security_Ssh_Key", "createObject", key)
    with pytest.raises(Failed, match="may run and be billed"):
        driver.delete(Resource("Ledger", "ledger", "x", LEDGER, {}))
    assert [each["id"] for each in onlooker.client.call("Account", "getSshKeys")] == [made["id"]]


def test_the_ledgers_rights_suffice_for_the_whole_life_of_a_cluster(limited_to):
    """The account's table of rights is its own, so that a call of ours that needs one more is refused here."""
    emulator, limited = limited_to(api.RIGHTS)
    with Driver(limited, TIME_SCALE) as driver:
        cluster = Cluster(driver, ("gpu-0",))
        made = driver.create("VirtualGuest", "gpu-1", {**cluster.guest("gpu-1"), "dataDisksGb": [500]})
        changes = {"tags": ["mine"], "portSpeedMbps": 100}
        cluster.guests["gpu-1"] = driver.update(made, {**made.inputs, **changes})
        cluster.destroy()
    assert Onlooker(emulator.config_file).billed() == []


def test_a_right_withdrawn_after_the_ledgers_check_stops_the_next_order(limited_to):
    """No ledger is asked with another user's key, for a single new guest, and with ``--target``."""
    everything = list(api.RIGHTS)
    emulator, limited = limited_to(everything)
    onlooker = Onlooker(emulator.config_file)
    with Driver(limited, TIME_SCALE) as driver:
        driver.create("Ledger", "ledger", LEDGER)
        made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
        emulator.restart(restricted_permissions=[each for each in everything if each != "SERVER_CANCEL"])
        for kind, wanted in (("VirtualGuest", guest("gpu-1")), ("Ledger", LEDGER)):
            with pytest.raises(
                Failed, match=r"nothing was ordered, as user .* lacks 'Cancel Server' \(SERVER_CANCEL\)"
            ):
                driver.create(kind, "gpu-1", wanted)
        assert [str(each["id"]) for each in onlooker.guests()] == [made.id]
        emulator.restart(restricted_permissions=everything)
        driver.create("VirtualGuest", "gpu-1", guest("gpu-1"))
    assert len(onlooker.billed()) == 2


def test_a_user_who_sees_no_bills_takes_no_living_guest_for_cancelled(limited_to):
    """Such a user is shown the guest without its billing item, as if it were cancelled."""
    emulator, limited = limited_to(each for each in api.RIGHTS if each != api.BILLS)
    owner = Onlooker(emulator.config_file)
    with Driver(emulator.config_file, TIME_SCALE) as full:
        made = full.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    with Driver(limited, TIME_SCALE) as driver:
        for act in (
            lambda: driver.read(made),
            lambda: driver.delete(made),
            lambda: driver.create("VirtualGuest", "gpu-0", guest("gpu-0")),
            lambda: driver.create("Ledger", "ledger", LEDGER),
        ):
            with pytest.raises(Failed, match=r"lacks .*\(ACCOUNT_SUMMARY_VIEW\)"):
                act()
    assert [str(each["id"]) for each in owner.billed()] == [made.id]
