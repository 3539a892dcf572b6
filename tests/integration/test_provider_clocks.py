"""Clocks that are set, computers that sleep and start anew: one machine each, whatever the laptop's clocks say."""

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from providers.grpc.servicer import EngineLog
from providers.rental import journal
from providers.rental.account import Resource
from providers.rental.order import Operation, adopt_or_order
from providers.softlayer import __main__ as plugin
from providers.softlayer.guest import Guests
from providers.softlayer.specs import GuestSpec
from tests.integration.lossy_wire import LossyWire, lossy_wire
from tests.integration.provider_cluster import MARK, OWNER, SETTLED_S, STACK, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.until import until

CLOCK_RATE = 60
TIME_SCALE = 0.02
SETTLED_REAL_S = SETTLED_S * TIME_SCALE
LAG_REAL_S = SETTLED_REAL_S - 3
STEPS = [timedelta(minutes=15), timedelta(minutes=-15)]
"""How far a clock is set; both are more than what orders are waited for."""


@dataclass
class World:
    """An account whose lists lag nearly as far as they may, a wire that loses the answer to one order, and a home."""

    account: Any
    wire: LossyWire
    folder: Path

    @property
    def journal(self) -> Path:
        """What all drivers of a test write down."""
        return self.folder / "home" / "journal" / f"{STACK}-{MARK}.jsonl"

    @property
    def config(self) -> Path:
        """The client's file that leads over the wire."""
        return self.wire.config(self.account.config_file, self.folder)

    def driver(self) -> Driver:
        """Start a provider."""
        return Driver(self.config, TIME_SCALE)

    def machines(self) -> list[str]:
        """List the guests as they are, whatever the account's lists show."""
        return [str(each["guest_id"]) for each in self.account.status()["machines"]]


@pytest.fixture
def world(emulator_with, tmp_path, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    account = emulator_with(clock_rate=CLOCK_RATE, list_lag_s=LAG_REAL_S * CLOCK_RATE, provisioning_s=30)
    with lossy_wire(account.endpoint, {"createObject": 1}) as wire:
        yield World(account, wire, tmp_path)


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change every line of a journal, as it would stand there had a clock been another."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        change(event)
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))


def begun(driver: Driver) -> threading.Thread:
    """Begin to create a guest."""

    def create() -> None:
        with contextlib.suppress(Failed, ValueError):
            driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))

    creating = threading.Thread(target=create, daemon=True)
    creating.start()
    return creating


def journal_text(world: World) -> str:
    return world.journal.read_text() if world.journal.exists() else ""


def killed_in_its_order(world: World, *, after_loss: bool) -> None:
    """Kill a provider whose order was accepted: while the call is out, or right after its answer got lost."""
    if not after_loss:
        world.wire.held["createObject"] = threading.Event()
    driver = world.driver()
    creating = begun(driver)
    until(lambda: '"lost"' in journal_text(world) if after_loss else world.machines())
    driver.kill()
    creating.join(30)
    world.wire.held.clear()


def one_machine_in_the_end(world: World) -> None:
    with world.driver() as driver:
        made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"), timeout=600)
    assert world.machines() == [made.id]
    assert world.wire.calls.count("createObject") == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_that_is_set_between_a_kill_and_the_next_up_orders_nothing_twice(world, step):
    killed_in_its_order(world, after_loss=False)

    def set_clock(event: dict[str, Any]) -> None:
        if "at" in event:
            event["at"] = (datetime.fromisoformat(event["at"]) - step).isoformat()

    changed(world.journal, set_clock)
    one_machine_in_the_end(world)


def test_a_computer_that_starts_anew_between_a_lost_answer_and_the_next_up_orders_nothing_twice(world):
    killed_in_its_order(world, after_loss=True)

    def start_anew(event: dict[str, Any]) -> None:
        if "boot" in event:
            event |= {"boot": "the one before", "seconds": 0}

    changed(world.journal, start_anew)
    one_machine_in_the_end(world)


def test_a_provider_that_is_stopped_while_its_order_is_out_orders_nothing_twice(world):
    world.wire.kept_back["createObject"] = threading.Event()
    with world.driver() as driver:
        creating = begun(driver)
        until(lambda: "createObject" in world.wire.calls)
        driver.process.signal(signal.SIGSTOP)
        time.sleep(SETTLED_REAL_S + 1)
        world.wire.kept_back.pop("createObject").set()
        driver.process.signal(signal.SIGCONT)
        creating.join(120)
        assert "Goes on with guest" in driver.said()
    assert len(world.machines()) == 1
    assert world.wire.calls.count("createObject") == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_clock_that_is_set_in_one_living_process_orders_nothing_twice(world, monkeypatch, step):
    real, began = journal.wall, time.monotonic()
    monkeypatch.setattr(journal, "wall", lambda: real() + step * (time.monotonic() - began > 1))
    stop = threading.Event()
    urn = f"urn:pulumi:{STACK}::microcluster::softlayer:index:VirtualGuest::gpu-0"
    session = plugin.SOFTLAYER.session({"configFile": str(world.config), "timeScale": TIME_SCALE}, stop)
    op = Operation(urn, session, EngineLog("").of(urn), 600)
    request = Guests().request(op, GuestSpec.model_validate(guest("gpu-0")), OWNER)
    made = adopt_or_order(op, op.market(), request)
    assert isinstance(made, Resource)
    assert world.machines() == [made.id]
    assert world.wire.calls.count("createObject") == 1
