"""History that the emulator writes, and the memory behind it."""

import sqlite3

import pytest

from emulator.cli import main
from emulator.shared.store import DATABASE_FILE
from emulator.softlayer.faults import Fault
from tests.unit.emulated import Emulated

KEY = {"label": "test-1f3a9c42", "notes": "microcluster test-1f3a9c42"}
KEY["key"] = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "C" * 43


def story(emulated: Emulated, what: str) -> list[str]:
    return [line["event"] for line in emulated.history("event") if line["what"] == what]


def test_the_history_has_the_life_of_a_guest_and_its_charge(tmp_path):
    emulated = Emulated(tmp_path)
    guest_id = emulated.ready()
    emulated.call("Virtual_Guest", "deleteObject", identifier=guest_id)
    for _ in range(12):
        emulated.call("Account", "getVirtualGuests")
    assert story(emulated, "guest") == ["made", "provisioned", "cancelled", "removed"]
    assert story(emulated, "billing_item") == ["made", "closed"]
    opened = next(line for line in emulated.history("event") if line["what"] == "billing_item")
    assert (opened["host"], opened["domain"]) == ("gpu-0", "test-1f3a9c42.microcluster")
    assert float(opened["per_hour"]) == 4.496


def test_a_thing_is_made_and_removed_under_its_label(tmp_path):
    emulated = Emulated(tmp_path)
    key_id = emulated.call("Security_Ssh_Key", "createObject", KEY)["id"]
    emulated.call("Security_Ssh_Key", "deleteObject", identifier=key_id)
    events = emulated.history("event")
    assert [line["event"] for line in events] == ["made", "removed"]
    assert {(line["what"], line["id"]) for line in events} == {("ssh_key", key_id)}
    assert events[0]["notes"] == "microcluster test-1f3a9c42"


def test_every_call_is_recorded_with_its_outcome_and_its_object(tmp_path):
    emulated = Emulated(tmp_path)
    guest_id = emulated.order()
    with pytest.raises(Fault):
        emulated.call("Virtual_Guest", "deleteObject", identifier=guest_id)
    ordered, refused = emulated.history("call")
    assert (ordered["method"], ordered["about"]) == ("Virtual_Guest::createObject", "gpu-0.test-1f3a9c42.microcluster")
    assert (refused["outcome"], refused["code"]) == ("fault", "SoftLayer_Exception_Public")
    assert refused["about"] == ordered["about"]
    assert refused["at"] - ordered["at"] == 1.0


def test_a_lagging_list_still_shows_what_was_cancelled_as_billed(tmp_path):
    emulated = Emulated(tmp_path, list_lag_s=3.0)
    guest_id = emulated.ready()
    emulated.call("Virtual_Guest", "deleteObject", identifier=guest_id)
    listed = emulated.call("Account", "getVirtualGuests", mask="id,billingItem[id]")
    assert listed[0]["billingItem"]["id"]
    read = emulated.call("Virtual_Guest", "getObject", identifier=guest_id, mask="id,billingItem[id]")
    assert "billingItem" not in read


def test_a_refused_write_is_taken_back_from_memory(tmp_path):
    emulated = Emulated(tmp_path)
    guest_id = emulated.order()
    group = emulated.call("Network_SecurityGroup", "createObject", {"name": "members"})["id"]
    rules = [{"direction": "ingress"}, {"direction": "up"}]
    with pytest.raises(Fault):
        emulated.call("Network_SecurityGroup", "addRules", rules, identifier=group)
    assert emulated.account.store.security_groups[group].rules == []
    assert story(emulated, "security_group") == ["made"]
    assert list(emulated.account.store.guests) == [guest_id]


def test_an_account_of_another_version_is_refused_with_the_next_step(tmp_path, capsys):
    Emulated(tmp_path).order()
    with sqlite3.connect(tmp_path / DATABASE_FILE) as database:
        database.execute("update records set body = x'7b7d' where kind = 'billing_items'")
    assert main(["status", "--state", str(tmp_path)]) == 1
    assert "python -m emulator reset" in capsys.readouterr().err
