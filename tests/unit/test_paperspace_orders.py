"""Orders, adoptions, refusals and removals of the Paperspace provider, over a socket against an emulated account."""

import json
import re
import secrets
import time
from types import SimpleNamespace

import pytest

from microcluster.accounts.paperspace.account import Paperspace, drive_password
from microcluster.accounts.paperspace.credentials import Credentials
from microcluster.accounts.paperspace.machine import host_key
from microcluster.accounts.shared.errors import PartialFailure, ProviderError
from microcluster.accounts.shared.journal import Intent
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.order import ORDER_ATTEMPTS, PAUSE_S
from microcluster.core import stack_keys
from microcluster.core.home import Owner, mark_of
from tests.unit.paperspace_renter import (
    CLOCK_RATE,
    OTHER,
    STACK,
    Renter,
    forget_answers,
    make_keys,
    network,
    open_items,
)
from tests.unit.paperspace_renter import home as home  # noqa: PLC0414 - the fixture
from tests.unit.paperspace_renter import renter as renter  # noqa: PLC0414 - the fixture
from tests.unit.paperspace_renter import team as team  # noqa: PLC0414 - the fixture
from tests.unit.paperspace_renter import team_of as team_of  # noqa: PLC0414 - the fixture


def test_a_cluster_is_rented_read_back_unchanged_and_ended_with_nothing_billed(team, renter):
    ledger = renter.create("Ledger")
    net = renter.create("PrivateNetwork")
    drive = renter.create("SharedDrive", networkId=net.resource_id)
    machine = renter.create("Machine", networkId=net.resource_id)
    assert len(team.names("machines")) == 1
    for kind, made, changes in (
        ("PrivateNetwork", net, {}),
        ("SharedDrive", drive, {"networkId": net.resource_id}),
        ("Machine", machine, {"networkId": net.resource_id}),
    ):
        inputs = renter.inputs(kind, **changes)
        live = renter.read(kind, made, inputs)
        assert {name: live.inputs[name] for name in inputs} == inputs
        assert live.outputs == made.outputs
    renter.delete("Machine", machine, networkId=net.resource_id)
    assert open_items(team) == ["private network", "shared drive"]  # The static address went with its machine.
    renter.delete("SharedDrive", drive, networkId=net.resource_id)
    renter.delete("PrivateNetwork", net)
    renter.delete("Ledger", ledger)
    assert open_items(team) == []
    assert team.names("scripts") == []
    assert "open billing items with mark" in renter.said.lines[-1]
    assert "by the price list of 2025-11-14" in renter.said.lines[-1]


def test_a_lost_answer_makes_one_machine_found_by_its_startup_script(team, renter):
    net = network(team, renter)
    team.fault("machines-create", "lost_reply")
    team.fault("machines-list", "stale", seconds=300, times=10_000)
    renter.create("Machine", networkId=net)
    assert any("is assigned to machine" in line for line in renter.said.lines)
    assert team.names("machines") == [f"gpu-0.{renter.owner}.microcluster"]


def test_an_order_with_a_lost_answer_may_turn_up_until_the_lists_are_settled(renter):
    renter.market.journal(renter.owner).intend(Intent("gpu-0", "machine", "gpu-0"))
    opened = OpenedAccount(renter.market)
    [sentence] = opened.to_come(renter.owner, (), time_scale=1.0)
    assert "the order of gpu-0" in sentence and "may still turn up" in sentence
    assert opened.to_come(renter.owner, (), time_scale=1e-12) == []


def test_another_computer_with_the_stacks_keys_adopts_machine_and_host_key(home, team, renter, monkeypatch):
    net = network(team, renter)
    first = renter.create("Machine", networkId=net)
    (home / "journal").rename(home / "journal-of-the-other")
    second = Renter(team.key_file, renter.public_key).create("Machine", networkId=net)
    assert (second.resource_id, second.outputs["hostKey"]) == (first.resource_id, first.outputs["hostKey"])
    assert len(team.names("machines")) == 1


def test_a_machine_that_another_computer_has_ended_stays_on_the_receipt(home, team, renter):
    net = network(team, renter)
    machine = renter.create("Machine", networkId=net)
    (home / "journal").rename(home / "kept")
    renter.delete("Machine", machine, networkId=net)
    (home / "kept").rename(home / "journal")
    rows = [row for row in OpenedAccount(renter.market).charges(renter.owner) if row.host == "gpu-0"]
    assert [(row.id, row.is_open) for row in rows if not row.is_part] == [(machine.resource_id, False)]


def test_two_orders_of_one_host_name_have_different_host_keys(team, renter):
    net = network(team, renter)
    first = renter.create("Machine", networkId=net)
    renter.delete("Machine", first, networkId=net)
    second = renter.create("Machine", networkId=net)
    assert first.outputs["hostKey"] != second.outputs["hostKey"]


def test_a_machine_of_a_version_without_nonces_is_adopted_with_host_key(home, team, renter, monkeypatch):
    net = network(team, renter)
    monkeypatch.setattr(secrets, "token_hex", lambda _: "")
    first = renter.create("Machine", networkId=net)
    monkeypatch.undo()
    monkeypatch.setenv("MICROCLUSTER_HOME", str(home))
    assert f"boot-gpu-0.{renter.owner}.microcluster" in team.names("scripts")
    forget_answers(renter, first)
    second = renter.create("Machine", networkId=net)
    expected = host_key(renter.owner, "gpu-0", renter.public_key, "").public
    assert (second.resource_id, second.outputs["hostKey"]) == (first.resource_id, expected)


def test_an_order_after_a_failed_one_names_its_machines_host_key(team, renter):
    net = network(team, renter)
    team.fault("machines-create", "capacity", times=20)
    with pytest.raises(ProviderError):
        renter.create("Machine", networkId=net)
    with team.account.lock:
        team.account.fault_injector.scripted.clear()
    made = renter.create("Machine", networkId=net)
    with team.account.lock:
        [machine] = team.account.store.tables["machines"].read_all()
    assert made.outputs["hostKey"] in machine.startup_script
    assert len([name for name in team.names("scripts") if name.startswith("boot-")]) == 1


def test_an_order_that_fails_by_chance_is_to_be_repeated(team, renter, monkeypatch):
    net, paused, wait = network(team, renter), [], renter.session.stop.wait
    team.fault("machines-create", "error", way="http_429", times=20)
    monkeypatch.setattr(renter.session.stop, "wait", lambda seconds: paused.append(seconds) or wait(seconds))
    with pytest.raises(ProviderError, match=r"nothing was ordered\. Run the command again\.$"):
        renter.create("Machine", networkId=net)
    assert team.names("machines") == []
    assert paused.count(PAUSE_S / CLOCK_RATE) == ORDER_ATTEMPTS


def test_the_end_of_a_rental_puts_the_waiting_ssh_key_in_place(home, team, renter):
    folder, ledger = home / "keys" / STACK, renter.create("Ledger")
    stack_keys.prepare(folder, STACK)
    machine = renter.create("Machine", networkId=network(team, renter))
    assert (folder / "id_ed25519.pub").read_text().startswith(renter.public_key), "while it is rented"
    renter.delete("Machine", machine)
    renter.delete("Ledger", ledger)
    assert not (folder / "id_ed25519.pub").read_text().startswith(renter.public_key)
    assert (mark_of(folder), (folder / stack_keys.WAITING).exists()) == (renter.owner.mark, False)
    assert any("has its new ssh key now" in line for line in renter.said.lines)


def test_an_end_that_is_proven_stays_proven_where_keys_cannot_be_renewed(home, renter):
    ledger = renter.create("Ledger")
    (home / "keys" / STACK / "mark").write_text("damaged")
    renter.delete("Ledger", ledger)
    assert any("are not renewed: Reading the mark" in line for line in renter.said.lines)
    assert ": 0; rented for" in renter.said.lines[-1]


def test_a_new_journal_waits_for_the_lists_before_it_orders(home, team, renter):
    net = network(team, renter)
    (home / "journal").rename(home / "journal-that-was-lost")
    later, began = Renter(team.key_file, renter.public_key), team.account.clock.now()
    made = later.create("Machine", networkId=net)
    ordered = later.market.find("machine", made.resource_id, later.owner, fresh=False).since
    assert ordered.timestamp() - began > Paperspace.settled_s
    assert any("this computer's journal did not order with it last" in line for line in later.said.lines)
    assert len([name for name in team.names("scripts") if name.startswith("claim-")]) == 1


@pytest.mark.parametrize("kind", ["PrivateNetwork", "SharedDrive", "Machine"])
def test_a_resource_with_another_mark_is_neither_imported_nor_deleted(team, renter, kind):
    api = renter.market.api
    foreign = api.once("POST", "/private-networks", {"name": f"net.{OTHER}", "region": "ny2"})["id"]
    if kind == "SharedDrive":
        body = {"name": f"data.{OTHER}", "size": 250, "region": "ny2", "networkId": foreign}
        foreign = api.once("POST", "/shared-drives", body)["id"]
    if kind == "Machine":
        body = {"name": f"gpu-0.{OTHER}", "machineType": "P4000x2", "templateId": "twnlo3zj", "region": "ny2"}
        foreign = api.once("POST", "/machines", {**body, "diskSize": 50, "networkId": foreign, "startOnCreate": True})[
            "data"
        ]["id"]
        renter.session.stop.wait(0.3)
    before = open_items(team)
    with pytest.raises(ProviderError, match="importing"):
        renter.read(kind, foreign, {})
    if kind == "Machine":
        with pytest.raises(ProviderError, match="not this stack's, or was renamed"):
            renter.delete(kind, foreign)
    else:
        renter.delete(kind, foreign)
    assert open_items(team) == before


def test_a_machine_whose_creation_fails_is_in_the_state_and_deletable(home, team_of):
    team = team_of(failed_rate=1.0)
    renter = Renter(team.key_file, make_keys(home))
    net = network(team, renter)
    with pytest.raises(PartialFailure) as failed:
        renter.create("Machine", networkId=net)
    assert re.search("its create event|nothing has been done on it", str(failed.value))
    renter.delete("Machine", failed.value.resource_id, networkId=net)
    assert open_items(team) == ["private network"]


def test_a_machine_that_somebody_stopped_is_started_by_the_next_update(team, renter):
    net = network(team, renter)
    made = renter.create("Machine", networkId=net)
    inputs = renter.inputs("Machine", networkId=net)
    renter.market.api.once("PATCH", f"/machines/{made.resource_id}/stop", {})
    with pytest.raises(PartialFailure, match="is not ready"):
        renter.read("Machine", made, inputs)  # It is on its way to being off.
    renter.update("Machine", made, inputs)
    assert renter.read("Machine", made, inputs) is not None


def test_a_machine_that_lost_its_static_address_gets_another_by_an_update(team, renter):
    net, api = network(team, renter), renter.market.api
    made = renter.create("Machine", networkId=net, publicIpType="static")
    inputs = renter.inputs("Machine", networkId=net, publicIpType="static")
    before = made.outputs["publicIp"]
    api.remove("/public-ips", before)
    outputs = renter.update("Machine", made, inputs)
    assert outputs["publicIp"] not in (None, before)
    assert [each["ip"] for each in api.list("/public-ips")] == [outputs["publicIp"]]


def delete_in_the_console(renter: Renter, machine_id: str) -> None:
    api = renter.market.api
    api.once("PATCH", f"/machines/{machine_id}/stop", {})
    while api.find("/machines", machine_id)["state"] != "off":
        time.sleep(0.01)
    api.once("DELETE", f"/machines/{machine_id}")
    while api.find("/machines", machine_id):
        time.sleep(0.01)


def test_a_refresh_releases_the_static_address_of_a_machine_deleted_by_hand(team, renter):
    net = network(team, renter)
    made = renter.create("Machine", networkId=net)
    delete_in_the_console(renter, made.resource_id)
    assert open_items(team) == ["private network", "public ip"]
    assert renter.read("Machine", made, renter.inputs("Machine", networkId=net)) is None
    assert open_items(team) == ["private network"]


def test_what_was_deleted_by_hand_is_closed_in_the_journal(team, renter):
    net, journal = network(team, renter), renter.market.journal(renter.owner)
    delete_in_the_console(renter, renter.create("Machine", networkId=net).resource_id)
    for _ in range(2):  # The second time it is found.
        made = renter.create("Machine", networkId=net)
    assert list(journal.accepted("machine")) == [made.resource_id]


def test_an_address_that_a_person_gave_to_another_machine_stays_there(team, renter):
    net, api = network(team, renter), renter.market.api
    made, other = (renter.create("Machine", networkId=net, hostname=each) for each in ("gpu-0", "gpu-1"))
    delete_in_the_console(renter, made.resource_id)
    address = made.outputs["publicIp"]
    api.remove("/public-ips", other.outputs["publicIp"])
    with team.account.lock:
        team.account.find("public_ips", address).machine_id = team.account.find("machines", other.resource_id).id
        team.account.store.flush()
    assert renter.read("Machine", made, renter.inputs("Machine", networkId=net)) is None
    assert [each["ip"] for each in api.list("/public-ips")] == [address]


def test_a_full_region_is_refused_with_the_regions_that_have_room(home, team_of):
    team = team_of(capacity={"ny2/P4000x2": 0})
    renter = Renter(team.key_file, make_keys(home))
    with pytest.raises(ProviderError, match=r"ny2 has no P4000x2 .* ca1 \(West Coast \(CA1\)\) and ams1"):
        renter.create("Ledger")
    net = network(team, renter)
    with pytest.raises(ProviderError, match=r"nothing was ordered. ny2 has no P4000x2 at the moment. ca1"):
        renter.create("Machine", networkId=net)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"nodes": 30}, "may have 20 machines, it has 0, and 30 more"),
        ({"templateId": "tvimtol9"}, "it is not offered for P4000x2, but for A100"),
        ({"templateId": "gone"}, "the account offers none of this id"),
    ],
)
def test_the_ledger_refuses_what_the_account_would_not_deliver(renter, changes, sentence):
    with pytest.raises(ProviderError, match=sentence):
        renter.create("Ledger", **changes)


def test_the_key_of_a_member_orders_nothing_and_takes_nothing_for_gone(home, team_of):
    team = team_of(member_key="the-key-of-a-member")
    admin = Renter(team.key_file, make_keys(home))
    net = network(team, admin)
    machine = admin.create("Machine", networkId=net)
    restricted = home / "member"
    restricted.write_text(team.key_file.read_text().replace(team.account.settings.api_key, "the-key-of-a-member"))
    restricted.chmod(0o600)
    member = Renter(restricted, admin.public_key)
    with pytest.raises(ProviderError, match="is a member of team .* and no admin"):
        member.create("Ledger")
    with pytest.raises(ProviderError, match="is a member of team .* and no admin"):
        member.read("Machine", machine, admin.inputs("Machine", networkId=net))
    with pytest.raises(ProviderError, match="is a member of team .* and no admin"):
        member.delete("Machine", machine, networkId=net)
    assert len(team.names("machines")) == 1


def test_a_member_is_known_by_its_teams_number_as_number_or_text():
    market = Paperspace(SimpleNamespace(credentials=Credentials("a-key")))
    membership = {"team": {"id": 7}, "isAdmin": False, "isOwner": False}
    market.session = {"team": {"id": "7", "namespace": "t"}, "user": {"teamMemberships": [membership]}}
    assert "no admin" in market.hidden()


def test_a_drives_password_is_in_no_output_and_for_its_stack_alone(team, renter):
    drive = renter.create("SharedDrive", networkId=network(team, renter))
    with team.account.lock:
        password = next(each.password for each in team.account.store.drives.read_all())
    found = renter.market.find("drive", drive.resource_id, renter.owner, fresh=False)
    live = renter.read("SharedDrive", drive, renter.inputs("SharedDrive", networkId=found.inputs["networkId"]))
    assert password not in json.dumps([drive.outputs, live.inputs, live.outputs]) + repr(found)
    assert drive_password(str(team.key_file), {}, drive.resource_id, renter.owner) == password
    with pytest.raises(ProviderError, match="so it is not this stack's"):
        drive_password(str(team.key_file), {}, drive.resource_id, Owner(STACK, "00000000"))


def test_the_journal_holds_no_private_key_and_each_order_once(home, team, renter):
    renter.create("Machine", networkId=network(team, renter))
    journal = "".join(path.read_text() for path in (home / "journal").glob("*.jsonl"))
    assert "PRIVATE" not in journal
    assert journal.count('"event": "ordered"') == 5  # The claim, its terms, the network, the script and the machine.


def test_the_stacks_public_key_has_to_belong_to_its_private_one(home, team, renter):
    net = network(team, renter)
    make_keys(home)
    with pytest.raises(ProviderError, match="is not the private part of the stack's public key"):
        renter.create("Machine", networkId=net)
    assert team.names("machines") == []
