"""Fault injection: the seed alone decides the fault of a call, and the history tells it."""

from collections import Counter

import pytest
from starlette.responses import Response

from emulator.shared.api import RateLimit
from emulator.shared.fault_injection import FaultInjectionError, FaultInjector, FaultRates, InjectedFault
from emulator.shared.response_faults import with_fault
from emulator.shared.settings import SETTINGS_FILE, UsageError
from emulator.softlayer.calls import Call
from emulator.softlayer.settings import Settings
from emulator.vendors import load_settings
from tests.unit.emulated import Emulated, template

MODEL = Settings.FAULT_MODEL
READ = Call("SoftLayer_Virtual_Guest", "getObject")
LIST = Call("SoftLayer_Account", "getVirtualGuests")
ORDER = Call("SoftLayer_Virtual_Guest", "createObject")
MANY_FAULTS = FaultRates({"error": 0.2, "lost_call": 0.2, "lost_reply": 0.2, "malformed": 0.2})
EVERYTHING = {"error": 0.05, "lost_call": 0.05, "lost_reply": 0.05, "malformed": 0.05, "stale": 0.05, "capacity": 0.05}


def injector(seed: int, rates: FaultRates) -> FaultInjector:
    return FaultInjector(seed, MODEL, rates)


def kinds(injector: FaultInjector, call: Call, key: str = "a", calls: int = 300) -> list[str | None]:
    return [injector.next_fault(call, key).kind for _ in range(calls)]


def test_faults_of_one_object_depend_on_the_seed_not_on_other_calls():
    among, met = injector(7, MANY_FAULTS), []
    for _ in range(20):
        among.next_fault(READ, "b")
        met.append(among.next_fault(READ, "a").kind)
        among.next_fault(ORDER, "a")
    assert met == kinds(injector(7, MANY_FAULTS), READ, "a", 20) != kinds(injector(8, MANY_FAULTS), READ, "a", 20)


def test_each_kind_comes_as_often_as_its_rate_says():
    met = Counter(kinds(injector(3, FaultRates({"error": 0.1, "lost_reply": 0.3})), READ, calls=4000))
    assert 0.08 < met["error"] / 4000 < 0.12
    assert 0.27 < met["lost_reply"] / 4000 < 0.33


def test_lists_alone_are_stale_and_orders_alone_find_no_room():
    faults = injector(1, FaultRates({"stale": 0.5, "capacity": 0.5}))
    assert set(kinds(faults, LIST)) == {"stale", None}
    assert set(kinds(faults, ORDER)) == {"capacity", None}
    assert set(kinds(faults, READ)) == {None}


def test_a_malformed_answer_may_replace_a_write_and_always_follows_a_read():
    faults = injector(1, FaultRates({"malformed": 1.0}))
    assert {faults.next_fault(ORDER, "a").when for _ in range(50)} == {"before", "after"}
    assert {faults.next_fault(READ, "a").when for _ in range(50)} == {"after"}


def test_a_scripted_fault_hits_as_often_as_asked_and_then_drawn_ones():
    scripted, plain = injector(5, MANY_FAULTS), injector(5, MANY_FAULTS)
    fault = {"method": "Virtual_Guest::getObject", "kind": "lost_reply", "times": 2}
    scripted.scripted.append(MODEL.read_scripted(fault))
    met, drawn = kinds(scripted, READ, calls=50), kinds(plain, READ, calls=50)
    assert met[:2] == ["lost_reply"] * 2
    assert met[2:] == drawn[2:]


@pytest.mark.parametrize(
    "wanted",
    [
        *({}, {"kind": "error"}, {"method": "a::b", "kind": "hail"}),
        *({"method": "a::b", "kind": "error", "way": "html"}, {"method": "a::b", "kind": "error", "oops": 1}),
    ],
)
def test_a_scripted_fault_that_makes_no_sense_is_refused(wanted):
    with pytest.raises(FaultInjectionError):
        MODEL.read_scripted(wanted)


@pytest.mark.parametrize("table", ["hail = 0.1", "error = 0.7\nlost_call = 0.7", "error = -1", "error = 'often'"])
def test_rates_that_make_no_sense_are_refused_with_the_files_name(tmp_path, table):
    (tmp_path / SETTINGS_FILE).write_text(f"[faults]\n{table}\n")
    with pytest.raises(UsageError, match="settings.toml.*faults"):
        load_settings(tmp_path, {})


@pytest.mark.parametrize(
    ("way", "body"), [("html", b"<html>"), ("empty", b""), ("truncated", b"[1, 2"), ("error_object", b'{"error"')]
)
def test_a_malformed_body_is_what_its_way_says(tmp_path, way, body):
    fault = InjectedFault("malformed", way)
    response = Response(b"[1, 2, 3]x", media_type="application/json")
    if way == "error_object":
        response = Emulated(tmp_path).api.error_object(response)
    changed = with_fault(response, fault)
    assert changed.status_code == 200
    assert changed.body.startswith(body)


def test_a_stale_list_misses_what_is_new(tmp_path):
    emulated = Emulated(tmp_path)
    emulated.script("Account::getVirtualGuests", "stale", seconds=60)
    emulated.order()
    assert emulated.call("Account", "getVirtualGuests") == []
    assert len(emulated.call("Account", "getVirtualGuests")) == 1


def test_a_history_with_faults_is_the_same_for_equal_seed_and_calls(tmp_path):
    histories = []
    for run in ("first", "second"):
        emulated = Emulated(tmp_path / run, seed=11, faults=MODEL.read_rates(EVERYTHING))
        for number in range(60):
            emulated.reply("Virtual_Guest", "createObject", template(f"gpu-{number % 3}"))
            emulated.reply("Account", "getVirtualGuests")
        histories.append((emulated.state / "history.jsonl").read_text())
        assert emulated.account.fault_injector.injected.keys() >= EVERYTHING.keys()
    assert histories[0] == histories[1]


def test_the_rate_limit_is_a_sliding_second_without_refused_calls():
    clock = [0.0]
    limit = RateLimit(3, lambda: clock[0])
    assert [limit.exceeded() for _ in range(5)] == [False, False, False, True, True]
    clock[0] = 0.9
    assert limit.exceeded()
    clock[0] = 1.0
    assert [limit.exceeded() for _ in range(4)] == [False, False, False, True]
    assert not any(RateLimit(0).exceeded() for _ in range(100))


def test_an_unordered_list_changes_its_order_each_time_as_the_seed_says(tmp_path):
    def listed(name: str, seed: int) -> list[list[int]]:
        emulated = Emulated(tmp_path / name, seed=seed)
        pods = [emulated.call("Network_Pod", "getAllObjects") for _ in range(5)]
        return [[each["name"] for each in page] for page in pods]

    first = listed("first", 1)
    assert len({tuple(each) for each in first}) > 1
    assert listed("second", 1) == first
    assert listed("third", 2) != first
