"""A second computer with the same folder of keys, which has no journal of the first: one machine each."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.provider_cluster import KEY, SETTLED_S, guest
from tests.integration.provider_driver import Driver, Failed
from tests.integration.until import until

CLOCK_RATE = 60
TIME_SCALE = 0.02
SETTLED_REAL_S = SETTLED_S * TIME_SCALE
LAG_REAL_S = SETTLED_REAL_S - 3
WAITS = "Waits 9 s, once, until whatever was ordered is in the account's lists"


@dataclass
class Computers:
    """Computers with one folder of keys between them, and an account whose lists lag nearly as far as they may."""

    account: Any
    folder: Path
    running: list[Driver]

    def driver(self, computer: str) -> Driver:
        """Start a provider on a computer."""
        home = {"MICROCLUSTER_HOME": str(self.folder / computer)}
        self.running.append(Driver(self.account.config_file, TIME_SCALE, environment=home))
        return self.running[-1]

    def machines(self) -> list[str]:
        """List the guests as they are, whatever the account's lists show."""
        return [str(each["guest_id"]) for each in self.account.status()["machines"]]


@pytest.fixture
def computers(emulator_with, tmp_path):
    account = emulator_with(clock_rate=CLOCK_RATE, list_lag_s=LAG_REAL_S * CLOCK_RATE, provisioning_s=30)
    found = Computers(account, tmp_path, [])
    yield found
    for driver in found.running:
        driver.leave()


def up(driver: Driver, hostname: str = "gpu-0") -> str:
    """Make the key and a guest, as a program would."""
    key = driver.create("SshKey", "key", KEY)
    return driver.create("VirtualGuest", hostname, guest(hostname, sshKeyIds=[key.id])).id


def test_a_second_computer_waits_for_the_lists_of_a_killed_one_and_orders_nothing_twice(computers):
    first = computers.driver("first")
    first.create("SshKey", "key", KEY)
    time.sleep(LAG_REAL_S)  # The lists show the key, and of the machine nothing yet.

    def create() -> None:
        with contextlib.suppress(Failed, ValueError):
            up(first)

    creating = threading.Thread(target=create, daemon=True)
    creating.start()
    until(computers.machines)
    first.kill()
    creating.join(30)
    made = up(computers.driver("second"))
    assert computers.machines() == [made]


def test_a_computer_waits_once_when_it_takes_over_and_the_one_before_orders_nothing_more(computers):
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
