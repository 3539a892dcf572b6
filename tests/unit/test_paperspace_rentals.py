"""Claim, terms and final receipt of a rental in Paperspace, over a socket against an emulated account."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from played_guard import charge

from microcluster.accounts.paperspace import views
from microcluster.accounts.paperspace.__main__ import PAPERSPACE
from microcluster.accounts.paperspace.account import Order, Paperspace
from microcluster.accounts.paperspace.specs import full_name
from microcluster.accounts.shared import order as kernel
from microcluster.accounts.shared.account import Claim, Extension, OrderRequest
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.journal import Journal
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.order import submit
from microcluster.core import stack_keys
from microcluster.core.home import Home, Owner
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


def test_a_kept_drive_keeps_its_network_and_all_else_is_closed(team, renter):
    net = renter.create("PrivateNetwork", keep=True)
    drive = renter.create("SharedDrive", networkId=net.resource_id, keep=True)
    renter.delete("SharedDrive", drive, networkId=net.resource_id, keep=True)
    renter.delete("PrivateNetwork", net, keep=True)
    renter.delete("Ledger", "any")
    assert open_items(team) == ["private network", "shared drive"]
    assert "kept at up to 16.00 USD a month" in renter.said.lines[-1]
    assert ": 0; rented for" in renter.said.lines[-1]
    again = renter.create("SharedDrive", networkId=network(team, renter))
    assert again.resource_id == drive.resource_id  # Taken over, and not to be kept any more.
    assert team.names("drives") == [f"data.{renter.owner}.microcluster"]


def remove_by_hand(renter: Renter) -> None:
    assert OpenedAccount(renter.market).remove(renter.market.resources(renter.owner), renter.said.info) == []


@pytest.mark.parametrize("way", ["network first", "network long before", "ledger alone", "fab sweep"])
def test_the_final_receipt_has_orders_that_got_no_answer(team, renter, way):
    net = renter.create("PrivateNetwork")
    drive = renter.create("SharedDrive", logical_name="cluster-drive", networkId=net.resource_id)
    forget_answers(renter, drive, renter.create("Machine", networkId=net.resource_id))
    if way.startswith("network"):
        renter.delete("PrivateNetwork", net)
    if way == "network long before":
        renter.session.stop.wait(2 * Paperspace.settled_s / CLOCK_RATE)
    if way == "fab sweep":
        remove_by_hand(renter)
    renter.delete("Ledger", "any")
    assert open_items(team) == []
    assert re.findall("(gpu-0|data) +(P4000x2|drive of 250 GB)", renter.said.lines[-1]) == [
        ("data", "drive of 250 GB"),
        ("gpu-0", "P4000x2"),
    ]


def test_the_final_receipt_has_in_full_what_an_older_version_ordered(team, renter):
    ledger, net = renter.create("Ledger"), renter.create("PrivateNetwork")
    drive = renter.create("SharedDrive", networkId=net.resource_id)
    machine = renter.create("Machine", networkId=net.resource_id)
    path = Journal(STACK, renter.owner.mark, "").path
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    older = {"machine": "P4000x2 50 static", "drive": "250", "network": ""}
    path.write_text("".join(json.dumps(line | {"sold": older.get(line.get("kind"), "")}) + "\n" for line in lines))
    renter.delete("Machine", machine, networkId=net.resource_id)
    renter.delete("SharedDrive", drive, networkId=net.resource_id)
    renter.delete("PrivateNetwork", net)
    renter.delete("Ledger", ledger)
    assert set(re.findall(r"^ +\S+ +(.*?) \(by", renter.said.lines[-1], re.MULTILINE)) == {
        "private network",
        "drive of 250 GB",
        "P4000x2 (2x P4000)",
        "its disk of 50 GB",
        "its static address",
    }


def test_the_final_receipt_has_a_drive_that_a_person_deleted(team, renter):
    net = network(team, renter)
    drive = renter.create("SharedDrive", networkId=net)
    renter.market.api.once("DELETE", f"/shared-drives/{drive.resource_id}")
    assert renter.read("SharedDrive", drive, renter.inputs("SharedDrive", networkId=net)) is None
    renter.delete("Ledger", "any")
    assert "data       drive of 250 GB" in renter.said.lines[-1]


def test_a_network_with_a_strangers_drive_is_not_deleted_nor_the_drive(team, renter):
    net = renter.create("PrivateNetwork")
    body = {"name": f"data.{OTHER}", "size": 250, "region": "ny2", "networkId": net.resource_id}
    renter.market.api.once("POST", "/shared-drives", body)
    with pytest.raises(ProviderError, match="is in use by"):
        renter.delete("PrivateNetwork", net, limit_s=100)
    assert team.names("drives") == [f"data.{OTHER}"]


def test_a_claim_that_is_not_yet_listed_is_not_repeated(home, team_of):
    team = team_of(list_lag_s=40.0)
    public_key = make_keys(home)
    renter = Renter(team.key_file, public_key)
    claim = {
        "name": f"claim-{Journal(STACK, renter.owner.mark, '').identity()}.{renter.owner}.microcluster",
        "script": "true",
    }
    op = renter.operation("Machine", {"hostname": "claim"})
    order = Order("/startup-scripts", claim)
    made = OrderRequest("claim", renter.owner, "claim", order)
    submit(op, renter.market, made, order)  # And then the process was killed.
    network(team, Renter(team.key_file, public_key))
    assert len([name for name in team.names("scripts") if name.startswith("claim-")]) == 1


def older_version(monkeypatch) -> None:
    """Read and write the claim as versions did that knew no terms."""

    def write_claim(market: Paperspace, claim: Claim, owner: Owner) -> None:
        name = full_name(views.claim_label(claim), owner)
        market.api.ensure("PUT", f"/startup-scripts/{claim.object_id}", {"name": name})

    monkeypatch.setattr(views, "terms_of", lambda row: None)
    monkeypatch.setattr(Paperspace, "write_claim", write_claim)
    monkeypatch.setattr(kernel, "_name_rental", lambda *_: None)


def test_a_rentals_terms_are_a_script_of_their_own_and_end_together(team, renter):
    limited = renter.inputs("Ledger", leaseMinutes=1800, budgetCents=12000)
    PAPERSPACE.resource("paperspace:index:Ledger").heed(renter.session, limited)
    machine = renter.create("Machine", networkId=network(team, renter))
    claim = renter.market.claim(renter.owner)
    assert (claim.terms.lease_minutes, claim.terms.budget_cents) == (1800, 12000)
    assert f"terms-{claim.terms.word}.{renter.owner}.microcluster" in team.names("scripts")
    longer = replace(claim.terms, lease_minutes=3600)
    assert renter.market.terms(renter.owner, longer) == renter.market.claim(renter.owner).terms == longer
    assert renter.market.claim(renter.owner).object_id == claim.object_id
    assert [each.short_name for each in renter.market.resources(renter.owner, "claim")] == ["claim", "terms"]
    renter.delete("Machine", machine)
    renter.delete("Ledger", "any")
    assert team.names("scripts") == []


def test_the_next_rental_begins_without_the_extension_of_the_last(team, renter):
    net = network(team, renter)
    machine = renter.create("Machine", networkId=net)
    renter.market.extension(renter.owner, Extension(Decimal(6)))
    renter.create("Machine", networkId=net, hostname="gpu-1")
    assert renter.market.extension(renter.owner) == Extension(Decimal(6)), "the rental goes on"
    renter.delete("Machine", machine)
    renter.delete("Machine", renter.create("Machine", networkId=net, hostname="gpu-1"))
    first = renter.market.terms(renter.owner)
    renter.market.terms(renter.owner, replace(first, first_order=first.first_order - 7200))
    team.account.clock.step(2 * 3600)
    Renter(team.key_file, renter.public_key).create("Machine", networkId=net)
    assert renter.market.terms(renter.owner).first_order > first.first_order, "it is another rental"
    assert renter.market.extension(renter.owner) == Extension()


@pytest.mark.parametrize("is_first_older", [False, True])
def test_clones_with_and_without_terms_share_one_rental_and_either_ends_it(team, renter, monkeypatch, is_first_older):
    net = network(team, renter) if not is_first_older else None
    with monkeypatch.context() as patched:
        older_version(patched)
        net = net or network(team, renter)
        renter.create("Machine", networkId=net)
        claim = renter.market.claim(renter.owner)
        assert claim == Claim(claim.object_id, Journal(STACK, renter.owner.mark, "").identity())
    later = Renter(team.key_file, renter.public_key)
    later.create("Machine", networkId=net, hostname="gpu-1")
    terms = later.market.claim(renter.owner).terms
    first = min(each.since.timestamp() for each in later.market.resources(renter.owner, "machine"))
    assert terms.first_order <= int(first)
    assert [name for name in team.names("scripts") if name.startswith("terms-")] == [
        f"terms-{terms.word}.{renter.owner}.microcluster"
    ]
    older_version(monkeypatch)
    renter.delete("Ledger", "any")
    assert (team.names("scripts"), team.names("machines"), open_items(team)) == ([], [], [])


def test_the_terms_are_ended_although_no_list_shows_them_yet(home, team_of):
    team = team_of(list_lag_s=50.0)
    renter = Renter(team.key_file, make_keys(home))
    net = renter.create("PrivateNetwork")
    renter.delete("PrivateNetwork", net)
    renter.delete("Ledger", "any")
    assert team.names("scripts") == []


def test_what_is_billed_with_nothing_behind_it_is_the_vendors_to_close(renter, monkeypatch):
    monkeypatch.setattr(Paperspace, "charges", lambda *_, **__: (charge(datetime.now(UTC), datetime.now(UTC)),))
    with pytest.raises(ProviderError, match=r"billing item 1 \(gpu-0, .*ask the vendor to close it"):
        renter.delete("Ledger", "any")


def test_a_copied_folder_of_keys_is_named_once(team, renter):
    copied = Owner("copy", renter.owner.mark)
    renter.market.api.once("POST", "/private-networks", {"name": f"net.{copied}.microcluster", "region": "ny2"})
    forget_answers(renter, renter.create("PrivateNetwork"))  # It is looked for more than once.
    renter.delete("Ledger", "any")
    assert team.names("networks") == [f"net.{copied}.microcluster"]
    assert sum("a copied folder of keys" in line for line in renter.said.lines) == 1


def test_the_end_of_a_renamed_stack_leaves_its_keys_to_it(home, renter):
    stack_keys.ensure(home / "keys" / STACK, STACK)
    ended = renter.operation("Ledger", {})
    ended = replace(ended, urn=ended.urn.replace(f":{STACK}:", ":big:"))
    PAPERSPACE.resource("paperspace:index:Ledger").delete(ended, "any", renter.inputs("Ledger"), {})
    assert Home.of().label_of("big") == STACK


def test_the_next_update_names_the_rental_of_an_older_versions_machine(team, renter):
    net = network(team, renter)
    made = renter.create("Machine", networkId=net)
    older = replace(made, outputs={**made.outputs, "rental": None})
    assert renter.update("Machine", older, renter.inputs("Machine", networkId=net))["rental"] == made.outputs["rental"]
    assert made.outputs["rental"] == renter.market.terms(renter.owner).rental_id(
        renter.market.whoami().account_id, renter.owner
    )
