"""What goes wrong with a call is decided by the seed alone, and what went wrong is known afterwards."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from starlette.requests import Request
from starlette.responses import Response

from emulator.rate_limit import RateLimit
from emulator.settings import SETTINGS_FILE, SettingsError, load_settings
from emulator.softlayer.admin import routes
from emulator.softlayer.calls import Answer, Call
from emulator.softlayer.fault_injection import FAIR, Forecast, Sky, Weather, WeatherError, read_forecast, read_one_off
from emulator.softlayer.faults import Fault
from emulator.softlayer.response_faults import spoil
from tests.unit.emulated import LOCAL, Emulated, template

READ = Call("SoftLayer_Virtual_Guest", "getObject")
LIST = Call("SoftLayer_Account", "getVirtualGuests")
ORDER = Call("SoftLayer_Virtual_Guest", "createObject")
STORMY = Forecast({"error": 0.2, "lost_call": 0.2, "lost_reply": 0.2, "malformed": 0.2})
EVERYTHING = {"error": 0.05, "lost_call": 0.05, "lost_reply": 0.05, "malformed": 0.05, "stale": 0.05, "capacity": 0.05}


def kinds(sky: Sky, call: Call, subject: str = "a", calls: int = 300) -> list[str | None]:
    return [sky.over(call, subject).kind for _ in range(calls)]


def test_the_same_seed_sends_the_same_weather_and_another_seed_other_weather():
    assert kinds(Sky(7, STORMY), READ) == kinds(Sky(7, STORMY), READ)
    assert kinds(Sky(7, STORMY), READ) != kinds(Sky(8, STORMY), READ)
    assert kinds(Sky(7, STORMY), READ, "a") != kinds(Sky(7, STORMY), READ, "b")


def test_the_weather_of_one_object_does_not_depend_on_calls_about_others():
    alone, among = Sky(7, STORMY), Sky(7, STORMY)
    expected = kinds(alone, READ, "a", 20)
    met = []
    for _ in range(20):
        among.over(READ, "b")
        met.append(among.over(READ, "a").kind)
        among.over(ORDER, "a")
    assert met == expected


def test_each_kind_comes_as_often_as_its_rate_says():
    met = Counter(kinds(Sky(3, Forecast({"error": 0.1, "lost_reply": 0.3})), READ, calls=4000))
    assert 0.08 < met["error"] / 4000 < 0.12
    assert 0.27 < met["lost_reply"] / 4000 < 0.33


def test_a_method_has_rates_of_its_own():
    forecast = read_forecast({"error": 1.0, "methods": {"SoftLayer_Virtual_Guest::createObject": {"error": 0}}})
    assert set(kinds(Sky(1, forecast), ORDER)) == {None}
    assert set(kinds(Sky(1, forecast), READ)) == {"error"}


def test_lists_alone_are_stale_and_orders_alone_find_no_room():
    sky = Sky(1, Forecast({"stale": 0.5, "capacity": 0.5}))
    assert set(kinds(sky, LIST)) == {"stale", None}
    assert set(kinds(sky, ORDER)) == {"capacity", None}
    assert set(kinds(sky, READ)) == {None}


def test_a_malformed_answer_to_a_write_comes_with_and_without_the_write_and_to_a_read_always_after_it():
    sky = Sky(1, Forecast({"malformed": 1.0}))
    assert {sky.over(ORDER, "a").when for _ in range(50)} == {"before", "after"}
    assert {sky.over(READ, "a").when for _ in range(50)} == {"after"}


def test_a_scripted_one_off_strikes_as_often_as_asked_and_then_the_drawn_weather_goes_on():
    sky, plain = Sky(5, STORMY), Sky(5, STORMY)
    sky.one_offs.append(read_one_off({"method": "Virtual_Guest::getObject", "kind": "lost_reply", "times": 2}))
    met, drawn = kinds(sky, READ, calls=50), kinds(plain, READ, calls=50)
    assert met[:2] == ["lost_reply"] * 2
    assert met[2:] == drawn[2:]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"kind": "error"},
        {"method": "a::b", "kind": "hail"},
        {"method": "a::b", "kind": "error", "way": "html"},
        {"method": "a::b", "kind": "error", "oops": 1},
    ],
)
def test_a_one_off_that_makes_no_sense_is_refused(wanted):
    with pytest.raises(WeatherError):
        read_one_off(wanted)


@pytest.mark.parametrize("table", ["hail = 0.1", "error = 0.7\nlost_call = 0.7", "error = -1", "error = 'often'"])
def test_a_forecast_that_makes_no_sense_is_refused_with_the_files_name(tmp_path, table):
    (tmp_path / SETTINGS_FILE).write_text(f"[weather]\n{table}\n")
    with pytest.raises(SettingsError, match="settings.toml.*weather"):
        load_settings(tmp_path, {})


@pytest.mark.parametrize(
    ("way", "body"), [("html", b"<html>"), ("empty", b""), ("truncated", b"[1, 2"), ("error_object", b'{"error"')]
)
def test_a_malformed_body_is_what_its_way_says(way, body):
    spoiled = spoil(Response(b"[1, 2, 3]x", media_type="application/json"), Weather("malformed", way))
    assert spoiled.status_code == 200
    assert spoiled.body.startswith(body)


def test_a_dropped_answer_is_none_and_fair_weather_changes_nothing():
    response = Response(b"1")
    assert spoil(response, Weather("lost_reply", "drop")) is None
    assert spoil(response, FAIR) is response


def test_a_lost_call_orders_nothing_and_a_lost_reply_orders(tmp_path):
    emulated = Emulated(tmp_path)
    for kind, guests in (("lost_call", 0), ("lost_reply", 1)):
        emulated.account.sky.one_offs.append(read_one_off({"method": "Virtual_Guest::createObject", "kind": kind}))
        reply = emulated.reply("Virtual_Guest", "createObject", template())
        assert reply.weather.kind == kind
        assert isinstance(reply.result, Answer if guests else Fault)
        assert len(emulated.account.store.guests) == guests
    assert [(line["outcome"], line["weather"]) for line in emulated.history("call")] == [
        ("fault", "lost_call"),
        ("ok", "lost_reply"),
    ]


def test_a_stale_list_misses_what_is_new(tmp_path):
    emulated = Emulated(tmp_path)
    stale = {"method": "Account::getVirtualGuests", "kind": "stale", "seconds": 60}
    emulated.account.sky.one_offs.append(read_one_off(stale))
    emulated.order()
    assert emulated.call("Account", "getVirtualGuests") == []
    assert len(emulated.call("Account", "getVirtualGuests")) == 1


def test_a_fresh_guest_cannot_be_read_for_a_while_but_can_be_changed(tmp_path):
    emulated = Emulated(tmp_path, read_lag_s=5.0)
    guest_id = emulated.order()
    with pytest.raises(Fault) as refused:
        emulated.call("Virtual_Guest", "getObject", identifier=guest_id)
    assert refused.value.code in ("SoftLayer_Exception_ObjectNotFound", "SoftLayer_Exception_NotImplemented")
    assert emulated.call("Virtual_Guest", "setTags", "a", identifier=guest_id) is True
    while emulated.history("call")[-1]["at"] - emulated.history("call")[0]["at"] < 4:
        emulated.call("Account", "getSshKeys")
    assert emulated.call("Virtual_Guest", "getObject", identifier=guest_id)["id"] == guest_id


def test_room_is_limited_per_datacenter_and_per_flavor_in_it(tmp_path):
    emulated = Emulated(tmp_path, capacity={"lon04/AC1_16X120X100": 1}, capacity_code="old")
    emulated.order("gpu-0")
    with pytest.raises(Fault) as refused:
        emulated.order("gpu-1")
    assert refused.value.code == "SoftLayer_Exception_Virtual_Host_Pool_InsufficientResources"
    assert emulated.order("gpu-1", supplementalCreateObjectOptions={"flavorKeyName": "AC2_16X120X100"})


def test_a_stormy_history_is_the_same_for_the_same_seed_and_calls(tmp_path):
    stories = []
    for run in ("first", "second"):
        emulated = Emulated(tmp_path / run, seed=11, weather=read_forecast(EVERYTHING))
        for number in range(60):
            emulated.reply("Virtual_Guest", "createObject", template(f"gpu-{number % 3}"))
            emulated.reply("Account", "getVirtualGuests")
        stories.append((emulated.state / "history.jsonl").read_text())
        assert emulated.account.sky.met.keys() >= {"error", "lost_call", "lost_reply", "malformed", "stale", "capacity"}
    assert stories[0] == stories[1]


def test_the_rate_limit_is_a_sliding_second_and_refused_calls_do_not_count():
    clock = [0.0]
    limit = RateLimit(3, lambda: clock[0])
    assert [limit.exceeded() for _ in range(5)] == [False, False, False, True, True]
    clock[0] = 0.9
    assert limit.exceeded()
    clock[0] = 1.0
    assert [limit.exceeded() for _ in range(4)] == [False, False, False, True]
    assert not any(RateLimit(0).exceeded() for _ in range(100))


def test_a_method_that_is_not_emulated_is_refused_by_name_and_counted(tmp_path):
    emulated = Emulated(tmp_path)
    for _ in range(2):
        with pytest.raises(Fault, match="SoftLayer_Virtual_Guest::levitate"):
            emulated.call("Virtual_Guest", "levitate")
    assert emulated.account.not_emulated == {"Virtual_Guest::levitate": 2}


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 400), ("10.112.7.1", 403)])
def test_only_this_machine_scripts_the_weather_and_no_guest(tmp_path, address, status):
    async def receive() -> dict:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    path = next(route for route in routes(Emulated(tmp_path).account) if route.path == "/faults")
    request = Request({"type": "http", "method": "POST", "headers": [], "server": (address, 8170)}, receive)
    assert asyncio.run(path.endpoint(request)).status_code == status


def test_a_bare_receipt_names_no_guest_although_there_is_one(tmp_path):
    emulated = Emulated(tmp_path)
    emulated.account.sky.one_offs.append(read_one_off({"method": "Product_Order::placeOrder", "kind": "bare_receipt"}))
    container = emulated.call("Virtual_Guest", "generateOrderTemplate", template())
    receipt = emulated.call("Product_Order", "placeOrder", {"orderContainers": [container]})
    assert receipt["orderDetails"]["orderContainers"][0]["virtualGuests"] == []
    assert len(emulated.account.store.guests) == 1


def test_a_list_without_an_order_comes_in_another_one_each_time_and_the_same_ones_by_seed(tmp_path):
    def listed(name: str, seed: int) -> list[list[int]]:
        emulated = Emulated(tmp_path / name, seed=seed)
        pods = [emulated.call("Network_Pod", "getAllObjects") for _ in range(5)]
        return [[each["name"] for each in page] for page in pods]

    first = listed("first", 1)
    assert len({tuple(each) for each in first}) > 1
    assert listed("second", 1) == first
    assert listed("third", 2) != first


def test_a_list_comes_in_the_order_that_is_asked_for(tmp_path):
    emulated = Emulated(tmp_path)
    tree = {"name": {"operation": "orderBy", "options": [{"name": "sort", "value": ["ASC"]}]}}
    call = Call("SoftLayer_Network_Pod", "getAllObjects", filter=tree, credentials=LOCAL)
    for _ in range(5):
        names = [each["name"] for each in emulated.reception.reply(call).result.value]
        assert names == sorted(names) and len(names) > 2
