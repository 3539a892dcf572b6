"""Injected faults over the wire, as the official client gets them."""

import time

import pytest
import SoftLayer

from emulator.cli import main
from tests.integration.test_emulator_account import client_of, order, template


@pytest.fixture(params=["xmlrpc", "rest"])
def protocol(request):
    return request.param


@pytest.fixture
def emulator(account_emulator):
    return account_emulator


def names(emulator) -> list[str]:
    return [each["hostname"] for each in client_of(emulator).call("Account", "getVirtualGuests")]


@pytest.mark.parametrize(("kind", "ordered"), [("lost_call", False), ("lost_reply", True)])
def test_a_cut_connection_is_a_transport_error_with_or_without_the_order(emulator, protocol, kind, ordered):
    hostname = f"{kind.replace('_', '-')}-{protocol}"
    emulator.script("Virtual_Guest::createObject", kind)
    with pytest.raises(SoftLayer.TransportError) as lost:
        client_of(emulator, protocol).call("Virtual_Guest", "createObject", template(hostname))
    assert lost.value.faultCode == 0
    assert (hostname in names(emulator)) == ordered


@pytest.mark.parametrize(
    ("way", "fault"),
    [
        *[(f"http_{status}", SoftLayer.SoftLayerError) for status in (500, 502, 503, 429)],
        ("internal_error", SoftLayer.exceptions.InternalError),
        ("application_error", SoftLayer.exceptions.ApplicationError),
        ("system_error", SoftLayer.exceptions.RemoteSystemError),
        ("rate_limit", SoftLayer.SoftLayerAPIError),
    ],
)
def test_an_error_stops_one_call_with_its_class_and_status(emulator, protocol, way, fault):
    emulator.script("Account::getObject", "error", way=way)
    with pytest.raises(SoftLayer.SoftLayerError) as refused:
        client_of(emulator, protocol).call("Account", "getObject")
    assert protocol == "rest" or isinstance(refused.value, fault)
    assert not way.startswith("http_") or refused.value.faultCode == int(way.removeprefix("http_"))
    assert client_of(emulator, protocol).call("Account", "getObject")["id"]


def test_a_slow_answer_arrives(emulator, protocol):
    emulator.script("Account::getObject", "slow", seconds=0.4)
    begin = time.monotonic()
    assert client_of(emulator, protocol).call("Account", "getObject")["id"]
    assert time.monotonic() - begin >= 0.4


def test_the_status_counts_injected_faults_and_the_methods_that_are_not_emulated(emulator):
    before = emulator.status()
    emulator.script("Account::getObject", "error", times=2)
    for _ in range(2):
        with pytest.raises(SoftLayer.SoftLayerError):
            client_of(emulator).call("Account", "getObject")
    with pytest.raises(SoftLayer.MethodNotFound):
        client_of(emulator).call("Account", "levitate")
    after = emulator.status()
    assert after["injected_faults"]["error"] - before["injected_faults"].get("error", 0) == 2
    assert after["not_emulated"]["Account::levitate"] == 1


def test_calls_above_the_accounts_rate_are_refused_and_later_ones_pass(emulator_with):
    emulator = emulator_with(calls_per_second=1)
    client = client_of(emulator)
    codes = []
    for _ in range(30):
        try:
            client.call("Account", "getCurrentUser", mask="id")
        except SoftLayer.SoftLayerAPIError as refused:
            codes.append(refused.faultCode)
    assert set(codes) == {"SoftLayer_Exception_WebService_RateLimitExceeded"}
    time.sleep(1.1)
    assert client.call("Account", "getCurrentUser", mask="id")["id"]


@pytest.mark.parametrize(("word", "left"), [("approve", 1), ("refuse", 0)])
def test_a_person_approves_or_refuses_a_waiting_order_on_the_command_line(emulator_with, word, left, capsys):
    emulator = emulator_with(approval="pending")
    order(client_of(emulator), "waiting")
    waiting = emulator.status()["waiting"]
    assert waiting[0]["names"] == ["waiting.test-1f3a9c42.microcluster"]
    decide = [word, str(waiting[0]["id"]), "--state", str(emulator.state)]
    assert main(decide) == 0
    assert emulator.status()["open_billing_items"] == left
    assert main(decide) == 1
    assert "does not wait for approval" in capsys.readouterr().err


def test_a_list_without_its_total_looks_as_if_it_had_none(emulator, protocol):
    client = client_of(emulator, protocol)
    order(client, f"untold-{protocol}")
    emulator.script("Account::getVirtualGuests", "no_total")
    assert client.call("Account", "getVirtualGuests").total_count == 0
    assert client.call("Account", "getVirtualGuests").total_count > 0
