"""An engine that dies in the middle: nothing more is ordered, and what was ordered is written down."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2_grpc

from microcluster.accounts.shared.journal import OPEN, Intent, Journal, intents
from tests.integration.provider_cluster import MARK, STACK, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.until import until
from tests.integration.wire import Wire, wire_to

LEAVES_WITHIN_S = 5
ASKED_FOR_S = 1
"""Less than the provider's GRACE_S, after which it is gone."""
NOISE_S = 15
PARENT = ("sh", "-c", 'exec 3<&0; "$0" "$@" <&3 & wait')
"""A parent that can be killed while the other end of stdin stays open."""


@pytest.fixture
def wire(account_emulator, onlooker):
    with wire_to(account_emulator.endpoint) as running:
        yield running


@pytest.fixture
def over(wire, account_emulator, tmp_path):
    drivers = []

    def start(**options) -> Driver:
        drivers.append(Driver(wire.config(account_emulator.config_file, tmp_path), 1, **options))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.leave()


@pytest.fixture
def events(tmp_path, monkeypatch):
    """Read the journal beside the wire's file."""
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    return Journal(STACK, MARK, "").events


def unresolved(events) -> list[Intent]:
    return [each for each in intents(events()) if each.event in OPEN]


def creating(driver: Driver, wire: Wire, method: str) -> threading.Event:
    """Begin a create, and return when its call ``method`` was carried out and its answer is held back."""
    held = wire.held[method] = threading.Event()

    def create() -> None:
        try:
            driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
        except (Failed, ValueError):
            return

    threading.Thread(target=create, daemon=True).start()
    until(lambda: method in wire.calls)
    return held


def leaves(driver: Driver) -> bool:
    """Tell whether the provider takes no new calls, over a connection of its own: one that is made as it stops listening is never answered."""
    with grpc.insecure_channel(driver.address) as channel:
        try:
            provider_pb2_grpc.ResourceProviderStub(channel).GetPluginInfo(empty_pb2.Empty(), timeout=ASKED_FOR_S)
        except grpc.RpcError as error:
            return error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
    return False


def close_stdin(driver: Driver) -> None:
    driver.process.close_stdin()


def send(*signals: signal.Signals) -> Callable[[Driver], None]:
    def end(driver: Driver) -> None:
        for each in signals:
            driver.process.signal(each)

    return end


@pytest.mark.parametrize("end", [close_stdin, Driver.hang_up, send(signal.SIGINT), send(signal.SIGTERM)])
def test_nothing_is_ordered_for_an_engine_that_is_gone(over, wire, onlooker, end):
    driver = over()
    look = creating(driver, wire, "getVirtualGuests")
    end(driver)
    if end is Driver.hang_up:
        time.sleep(2)  # It serves on, and nobody can ask whether it knows it yet.
        look.set()
        time.sleep(2)
    else:
        until(lambda: leaves(driver))
        look.set()
        assert driver.process.ended(LEAVES_WITHIN_S + NOISE_S)
    assert "createObject" not in wire.calls
    assert onlooker.guests() == []


def test_nothing_is_ordered_once_the_parent_process_is_gone(over, wire, onlooker):
    driver = over(started_by=PARENT)
    (child,) = Path(f"/proc/{driver.process.pid}/task/{driver.process.pid}/children").read_text().split()
    look = creating(driver, wire, "getVirtualGuests")
    orphan = os.pidfd_open(int(child))
    driver.kill()
    look.set()
    assert select.select([orphan], [], [], LEAVES_WITHIN_S + NOISE_S)[0]
    os.close(orphan)
    assert "createObject" not in wire.calls


@pytest.mark.parametrize(
    "end", [close_stdin, send(signal.SIGINT), send(signal.SIGINT, signal.SIGINT), send(signal.SIGTERM)]
)
def test_an_order_on_its_way_is_recorded_before_the_provider_leaves(over, wire, onlooker, events, end):
    driver = over()
    answer = creating(driver, wire, "createObject")
    end(driver)
    until(lambda: leaves(driver))
    answer.set()
    assert driver.process.ended(LEAVES_WITHIN_S + NOISE_S)
    (ordered,) = onlooker.guests()
    assert [each.id for each in intents(events())] == [str(ordered["id"])]


def test_an_order_answered_too_late_for_a_dying_provider_is_unresolved(over, wire, onlooker, events):
    driver = over()
    answer = creating(driver, wire, "createObject")
    close_stdin(driver)
    assert driver.process.ended(LEAVES_WITHIN_S + NOISE_S)
    answer.set()
    (intent,) = unresolved(events)
    assert (intent.name, intent.kind, intent.hostname) == ("gpu-0", "guest", "gpu-0")
    again = over()
    made = again.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert [str(each["id"]) for each in onlooker.guests()] == [made.id]
    assert unresolved(events) == []


def test_the_journal_distinguishes_a_refused_order_from_a_lost_one(over, wire, events):
    driver = over()
    with pytest.raises(Failed, match="20 is not one of .*Correct the stack file"):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0", portSpeedMbps=20))
    assert unresolved(events) == []
    assert [event["event"] for event in events()] == ["begun", "intent", "refused"]


def test_nothing_is_ordered_where_it_cannot_be_written_down(over, wire, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "journal").symlink_to("nowhere")
    driver = over(environment={"MICROCLUSTER_HOME": str(tmp_path / "taken")})
    with pytest.raises(Failed, match="writing down .*Nothing was ordered"):
        driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))
    assert "createObject" not in wire.calls
