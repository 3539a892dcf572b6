"""Machines of the emulated Paperspace account: states, events, addresses and bills as the account's clock goes on."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from emulator.paperspace import billing
from emulator.paperspace.records import BillingItem
from emulator.paperspace.vendor import holdings
from emulator.shared.status import as_text, status_of
from tests.unit.emulated_paperspace import EmulatedPaperspace, Refused, order

DAY_S = 86_400.0
JANUARY = 1767225600.0  # 2026-01-01T00:00Z


@pytest.fixture
def account(tmp_path: Path) -> EmulatedPaperspace:
    return EmulatedPaperspace(tmp_path)


def code(account: EmulatedPaperspace, method: str, path: str, **given: object) -> str:
    with pytest.raises(Refused) as refusal:
        account.call(method, path, **given)
    return refusal.value.code


def open_items(account: EmulatedPaperspace) -> set[str]:
    """Billed resources beside the machines' network."""
    return {item.kind for item in account.account.store.billing_items.living()} - {"private network"}


def states(account: EmulatedPaperspace, machine: str, calls: int = 30) -> list[str]:
    seen: list[str] = []
    for _ in range(calls):
        status, body = account.answer("GET", f"/machines/{machine}")
        now = body["state"] if status == 200 else "404"
        seen += [now] if [now] != seen[-1:] else []
    return seen


def test_a_machine_is_built_then_started_then_ready_with_two_events(account):
    machine = account.order()
    assert states(account, machine) == ["provisioning", "starting", "serviceready", "ready"]
    events = account.call("GET", "/machine-events", machineId=machine, order="asc")["items"]
    assert sorted((each["name"], each["state"]) for each in events) == [("create", "done"), ("start", "done")]


def test_a_stopped_machine_is_off_pays_on_and_starts_again(account):
    machine = account.ready()
    account.call("PATCH", f"/machines/{machine}/stop")
    assert states(account, machine) == ["stopping", "off"]
    assert open_items(account) == {"machine", "machine disk"}
    account.call("PATCH", f"/machines/{machine}/start")
    assert states(account, machine) == ["starting", "serviceready", "ready"]


def test_a_deleted_machine_is_404_and_its_events_stay(account):
    machine = account.ready()
    account.stop(machine)
    event = account.call("DELETE", f"/machines/{machine}")["event"]
    assert states(account, machine)[-1] == "404"
    events = account.call("GET", "/machine-events", machineId=machine)["items"]
    assert {each["id"]: each["state"] for each in events}[event["id"]] == "done"
    assert code(account, "DELETE", f"/machines/{machine}") == "NOT_FOUND"


def test_work_on_a_busy_machine_and_redundant_and_wrong_actions_are_refused(account):
    machine = account.order()
    for action in ("start", "stop"):
        assert code(account, "PATCH", f"/machines/{machine}/{action}") == "CONFLICT"
    assert code(account, "PUT", f"/machines/{machine}", name="b") == "CONFLICT"
    account.wait(machine, "ready")
    assert code(account, "PATCH", f"/machines/{machine}/start") == "BAD_REQUEST"
    assert code(account, "DELETE", f"/machines/{machine}") == "PRECONDITION_FAILED"
    account.stop(machine)
    assert code(account, "PATCH", f"/machines/{machine}/stop") == "BAD_REQUEST"


def test_a_machine_that_is_still_being_built_can_be_deleted(account):
    machine = account.order()
    account.call("DELETE", f"/machines/{machine}")
    account.gone(machine)
    names = {each["name"]: each["state"] for each in account.call("GET", "/machine-events", machineId=machine)["items"]}
    assert names == {"create": "cancelled", "start": "cancelled", "deactivate": "done"}


def test_a_failed_creation_ends_its_event_and_the_machine_stays_billed(tmp_path):
    account = EmulatedPaperspace(tmp_path, failed_rate=1.0)
    machine = account.order()
    assert states(account, machine) == ["provisioning"]
    [event] = account.call("GET", "/machine-events", machineId=machine)["items"]
    assert (event["state"], event["error"], event["dtFinished"] is not None) == ("error", None, True)
    assert open_items(account) == {"machine", "machine disk"}
    account.call("DELETE", f"/machines/{machine}")
    account.gone(machine)
    assert open_items(account) == set()


def test_a_dynamic_address_changes_with_each_start_and_costs_only_while_on(account):
    machine = account.ready(publicIpType="dynamic")
    first = account.call("GET", f"/machines/{machine}")["publicIp"]
    account.stop(machine)
    assert account.call("GET", f"/machines/{machine}")["publicIp"] is None
    assert account.call("GET", "/public-ips")["items"] == []
    assert "public ip" not in open_items(account)
    account.call("PATCH", f"/machines/{machine}/start")
    assert account.call("GET", f"/machines/{machine}")["publicIp"] not in (None, first)


def test_a_static_address_outlives_its_machine_and_costs_until_released(account):
    machine = account.ready(publicIpType="static")
    address = account.call("GET", f"/machines/{machine}")["publicIp"]
    account.stop(machine)
    assert account.call("GET", f"/machines/{machine}")["publicIp"] == address
    account.call("DELETE", f"/machines/{machine}")
    account.gone(machine)
    [left] = account.call("GET", "/public-ips")["items"]
    assert (left["ip"], "assignedMachineId" in left) == (address, False)
    assert open_items(account) == {"public ip"}
    account.call("DELETE", f"/public-ips/{address}")
    assert open_items(account) == set()


def test_quota_and_capacity_refuse_the_next_machine(tmp_path):
    small = EmulatedPaperspace(tmp_path / "small", max_machines=1)
    small.order("a")
    assert code(small, "POST", "/machines", **wanted("b")) == "FORBIDDEN"
    full = EmulatedPaperspace(tmp_path / "full", capacity={"ny2/P4000x2": 1})
    asked = {"machineType": "P4000x2", "region": "ny2"}
    assert full.call("GET", "/machine-availability", **asked) == {"available": True}
    full.order("a")
    assert full.call("GET", "/machine-availability", **asked) == {"available": False}
    assert code(full, "POST", "/machines", **wanted("b")) == "PRECONDITION_FAILED"
    full.order("c", region="ca1", networkId=full.network(region="ca1"))
    unsold = {"machineType": "A5000", "region": "ams1"}
    assert full.call("GET", "/machine-availability", **unsold) == {"available": False}
    assert code(full, "POST", "/machines", **wanted(**unsold)) == "PRECONDITION_FAILED"


def test_everything_that_is_billed_is_in_the_status_with_its_price(account):
    account.drive(account.home)
    account.ready(publicIpType="static")
    held = holdings(account.account)
    prices = {each["what"]: (each["per_hour"], each["at_most_per_month"]) for each in held["billed"]}
    assert prices == {
        "private network": ("0.0015", "1"),
        "shared drive": ("0.0238", "16"),
        "machine disk": ("0.0074", "5"),
        "machine": ("1.02", None),
        "public ip": ("0.0045", "3"),
    }
    assert held["open_billing_items"] == len(prices)
    json.dumps(held)
    account.order("a\x1b[2J\u202e\n[/b]")
    text = as_text(status_of(account.account, holdings, port=1))
    assert "a\\u001b[2J\\u202e\\u000a[/b]" in text
    assert not {"\x1b", "\u202e"} & set(text), "no name moves the terminal of who reads it"


@pytest.mark.parametrize(
    ("per_hour", "per_month", "opened", "seconds", "dollars"),
    [
        ("1.02", None, JANUARY, 3601, "2.04"),
        ("1.02", None, JANUARY, 30 * DAY_S, "734.40"),
        ("0.0238", "16", JANUARY, 30 * DAY_S, "16"),
        ("0.0238", "16", JANUARY + 30 * DAY_S, 2 * DAY_S, "1.1424"),
        ("0.0238", "16", JANUARY, 59 * DAY_S, "31.9936"),
    ],
)
def test_a_started_hour_is_paid_and_a_month_has_a_limit(per_hour, per_month, opened, seconds, dollars):
    item = BillingItem(1, "any", 1, "x", "x", per_hour, per_month, opened)
    assert billing.charged(item, opened + seconds) == Decimal(dollars)


def wanted(name: str = "node", **changes: object) -> dict[str, object]:
    return order(name) | changes
