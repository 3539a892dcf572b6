"""Lists that lag nearly as far as they may: a second computer, a clock that is set, a computer that sleeps; one machine each."""

import contextlib
import json
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.integration.provider_cluster import KEY, MARK, SETTLED_S, STACK, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.until import until
from tests.integration.wire import Wire, wire_to

CLOCK_RATE = 60
TIME_SCALE = 0.02
SETTLED_REAL_S = SETTLED_S * TIME_SCALE
LAG_REAL_S = SETTLED_REAL_S - 3
STEP = timedelta(minutes=15)
"""Jump of a clock: more than the wait for orders."""
WAITS = "Waits 9 s, once, until whatever was ordered is in the account's lists"


@dataclass
class Computers:
    """Computers with one folder of keys between them, and the wire from all of them to an account whose lists lag."""

    account: Any
    wire: Wire
    folder: Path
    running: list[Driver]

    def driver(self, computer: str) -> Driver:
        """Start a provider on a computer."""
        home = {"MICROCLUSTER_HOME": str(self.folder / computer)}
        config = self.wire.config(self.account.config_file, self.folder)
        self.running.append(Driver(config, TIME_SCALE, environment=home))
        return self.running[-1]

    def machines(self) -> list[str]:
        """List the guests as they are, whatever the account's lists show."""
        return [str(each["guest_id"]) for each in self.account.status()["machines"]]


@pytest.fixture
def computers(emulator_with, tmp_path):
    account = emulator_with(clock_rate=CLOCK_RATE, list_lag_s=LAG_REAL_S * CLOCK_RATE, provisioning_s=30)
    with wire_to(account.endpoint) as wire:
        found = Computers(account, wire, tmp_path, [])
        yield found
        for driver in found.running:
            driver.leave()


def up(driver: Driver, hostname: str = "gpu-0") -> str:
    """Make the key and a guest, as a program would."""
    key = driver.create("SshKey", "key", KEY)
    return driver.create("VirtualGuest", hostname, guest(hostname, sshKeyIds=[key.id])).id


def begun(create: Callable[[Driver], object], driver: Driver) -> threading.Thread:
    """Begin to create something."""

    def run() -> None:
        with contextlib.suppress(Failed, ValueError):
            create(driver)

    creating = threading.Thread(target=run, daemon=True)
    creating.start()
    return creating


def guest_alone(driver: Driver) -> str:
    return driver.create("VirtualGuest", "gpu-0", guest("gpu-0")).id


def test_a_second_computer_waits_for_a_killed_ones_lists_and_reorders_nothing(computers):
    first = computers.driver("first")
    first.create("SshKey", "key", KEY)
    time.sleep(LAG_REAL_S)  # The lists show the key, and of the machine nothing yet.
    creating = begun(up, first)
    until(computers.machines)
    first.kill()
    creating.join(30)
    made = up(computers.driver("second"))
    assert computers.machines() == [made]


def test_a_computer_that_takes_over_waits_once_and_the_former_orders_nothing(computers):
    first, with_its_journal = computers.driver("first"), computers.driver("first")
    up(first)
    up(with_its_journal, "gpu-1")
    assert WAITS not in first.said() + with_its_journal.said()
    time.sleep(LAG_REAL_S)
    second, again = computers.driver("second"), computers.driver("second")
    up(second, "gpu-2")
    up(again, "gpu-3")
    assert WAITS in second.said() and WAITS not in again.said()
    with pytest.raises(Failed, match=r"another computer orders for stack test now .*Nothing was ordered from here"):
        up(first, "gpu-4")
    assert len(computers.machines()) == 4


def test_two_computers_at_the_same_time_make_one_machine(computers):
    def attempt(computer: str) -> str:
        try:
            return up(computers.driver(computer))
        except Failed as failed:
            return str(failed)

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(attempt, ["first", "second"]))
    (machine,) = computers.machines()
    assert machine in said
    assert all(each == machine or "another computer orders for stack" in each for each in said)


def test_a_clock_set_between_a_kill_and_the_next_up_reorders_nothing(computers):
    computers.wire.held["createObject"] = threading.Event()
    driver = computers.driver("first")
    creating = begun(guest_alone, driver)
    until(computers.machines)
    driver.kill()
    creating.join(30)
    computers.wire.held.clear()
    journal = computers.folder / "first" / "journal" / f"{STACK}-{MARK}.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    for event in events:
        if "at" in event:
            event["at"] = (datetime.fromisoformat(event["at"]) - STEP).isoformat()
    journal.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    made = guest_alone(computers.driver("first"))
    assert computers.machines() == [made]
    assert computers.wire.calls.count("createObject") == 1


def test_a_provider_stopped_with_its_order_out_orders_nothing_twice(computers):
    computers.account.script("Virtual_Guest::createObject", "lost_reply")
    computers.wire.kept_back["createObject"] = threading.Event()
    driver = computers.driver("first")
    creating = begun(guest_alone, driver)
    until(lambda: "createObject" in computers.wire.calls)
    driver.process.signal(signal.SIGSTOP)
    time.sleep(SETTLED_REAL_S + 1)
    computers.wire.kept_back.pop("createObject").set()
    driver.process.signal(signal.SIGCONT)
    creating.join(120)
    assert "Goes on with guest" in driver.said()
    assert len(computers.machines()) == 1
    assert computers.wire.calls.count("createObject") == 1
