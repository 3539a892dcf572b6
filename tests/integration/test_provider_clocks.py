"""Clocks that are set, and computers that sleep: one machine each, whatever the laptop's clocks say."""

import contextlib
import json
import signal
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.provider_cluster import MARK, SETTLED_S, STACK, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.until import until
from tests.integration.wire import Wire, wire_to

CLOCK_RATE = 60
TIME_SCALE = 0.02
SETTLED_REAL_S = SETTLED_S * TIME_SCALE
LAG_REAL_S = SETTLED_REAL_S - 3
STEP = timedelta(minutes=15)
"""How far a clock is set: more than what orders are waited for."""


@dataclass
class World:
    """An account that loses the answer to one order and whose lists lag nearly as far as they may, a wire to it, and a home."""

    account: Any
    wire: Wire
    folder: Path

    @property
    def journal(self) -> Path:
        """What all drivers of a test write down."""
        return self.folder / "home" / "journal" / f"{STACK}-{MARK}.jsonl"

    def driver(self) -> Driver:
        """Start a provider."""
        return Driver(self.wire.config(self.account.config_file, self.folder), TIME_SCALE)

    def machines(self) -> list[str]:
        """List the guests as they are, whatever the account's lists show."""
        return [str(each["guest_id"]) for each in self.account.status()["machines"]]


@pytest.fixture
def world(emulator_with, tmp_path):
    account = emulator_with(clock_rate=CLOCK_RATE, list_lag_s=LAG_REAL_S * CLOCK_RATE, provisioning_s=30)
    account.script("Virtual_Guest::createObject", "lost_reply")
    with wire_to(account.endpoint) as wire:
        yield World(account, wire, tmp_path)


def begun(driver: Driver) -> threading.Thread:
    """Begin to create a guest."""

    def create() -> None:
        with contextlib.suppress(Failed, ValueError):
            driver.create("VirtualGuest", "gpu-0", guest("gpu-0"))

    creating = threading.Thread(target=create, daemon=True)
    creating.start()
    return creating


def killed_in_its_order(world: World) -> None:
    """Kill a provider whose order was accepted, while the call is out."""
    world.wire.held["createObject"] = threading.Event()
    driver = world.driver()
    creating = begun(driver)
    until(world.machines)
    driver.kill()
    creating.join(30)
    world.wire.held.clear()


def test_a_clock_that_is_set_between_a_kill_and_the_next_up_orders_nothing_twice(world):
    killed_in_its_order(world)
    events = [json.loads(line) for line in world.journal.read_text().splitlines()]
    for event in events:
        if "at" in event:
            event["at"] = (datetime.fromisoformat(event["at"]) - STEP).isoformat()
    world.journal.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    with world.driver() as driver:
        made = driver.create("VirtualGuest", "gpu-0", guest("gpu-0"), timeout=600)
    assert world.machines() == [made.id]
    assert world.wire.calls.count("createObject") == 1


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
