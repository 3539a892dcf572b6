"""Machines that follow the account: booted, restricted, restarted and removed in the background."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.machines.spec import Access, MachineError, MachineSpec, NoMachines
from emulator.shared import machine_reconciler, status
from emulator.shared.machine_reconciler import MachineReconciler
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.faults import Fault
from emulator.softlayer.guest_machines import GuestMachines
from emulator.softlayer.records import Guest
from emulator.softlayer.vendor import holdings
from tests.unit.emulated import Emulated, template

FAR_S = 40
HERE = {"router": {"id": 7001}}


class Notebook(NoMachines):
    """Machines that only write down what became of them."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.broken: set[str] = set()
        self.running: dict[int, MachineSpec] = {}
        self.access: dict[int, Access] = {}
        self.boots: list[int] = []

    def boot(self, spec: MachineSpec) -> None:
        self.gate.wait(FAR_S)
        if spec.hostname in self.broken:
            raise MachineError(f"Booting {spec.hostname}: the image is missing. Run make images.")
        self.boots.append(spec.guest_id)
        self.running[spec.guest_id] = spec

    def power_off(self, guest_id: int) -> None:
        self.running.pop(guest_id, None)

    def destroy(self, guest_id: int) -> None:
        self.running.pop(guest_id, None)

    def restrict(self, guest_id: int, access: Access) -> None:
        self.access[guest_id] = access


class Bench(Emulated):
    """An account with its reconciler, whose clock goes by real time."""

    def __init__(self, state: Path) -> None:
        subnets = {"private_subnets": ("10.113.7.0/24",)}
        super().__init__(state, clock_rate=600, clock_step_s=0.0, clock_start="", provisioning_s=60, **subnets)
        self.machines = Notebook()
        self.reconciler = MachineReconciler(self.account, GuestMachines(self.account), self.machines)
        self.reconciler.start()

    def order(self, hostname: str = "gpu-0", *groups: int) -> int:
        bound = {"securityGroupBindings": [{"securityGroup": {"id": group}} for group in groups]}
        return super().order(hostname, primaryBackendNetworkComponent={**HERE, **bound})

    def provisioned(self, guest_id: int) -> bool:
        return bool(self.call("Virtual_Guest", "getObject", identifier=guest_id)["provisionDate"])


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.machines.gate.set()
    bench.reconciler.stop()


def until(probe: Callable[[], Any]) -> None:
    deadline = time.monotonic() + FAR_S
    while not probe():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_a_guest_is_ready_only_when_its_machine_is(bench):
    bench.machines.gate.clear()
    guest_id = bench.order("gpu-0")
    time.sleep(0.3)  # three minutes of the account's clock, of which provisioning takes one
    assert not bench.provisioned(guest_id)
    bench.machines.gate.set()
    until(lambda: bench.provisioned(guest_id))
    spec = bench.machines.running[guest_id]
    assert spec.gpu_count == 2
    assert [(disk.device, disk.capacity_gb) for disk in spec.disks] == [(2, 2000)]
    assert len(spec.root_password) == 8


def test_the_api_answers_at_once_while_many_machines_boot(bench):
    bench.machines.gate.clear()
    guests = [bench.order(f"gpu-{number}") for number in range(64)]
    slowest = 0.0
    for guest_id in guests:
        begin = time.monotonic()
        bench.call("Virtual_Guest", "getObject", identifier=guest_id, mask="id,provisionDate,activeTransaction[id]")
        slowest = max(slowest, time.monotonic() - begin)
    assert slowest < FAR_S / 4, "whoever waits for a machine waits for the gate"
    bench.machines.gate.set()
    until(lambda: all(bench.provisioned(each) for each in guests))
    assert sorted(bench.machines.boots) == guests


def test_a_machine_that_fails_to_boot_leaves_its_guest_provisioning_and_explained(bench):
    bench.machines.broken.add("gpu-0")
    guest_id = bench.order("gpu-0")
    until(lambda: bench.account.store.guests.read(guest_id).machine_error)
    assert "make images" in bench.account.store.guests.read(guest_id).machine_error
    assert not bench.provisioned(guest_id)


def test_members_of_a_group_are_let_in_by_their_current_addresses(bench):
    group = bench.call("Network_SecurityGroup", "createObject", {"name": "members"})["id"]
    rule = {"direction": "ingress", "remoteGroupId": group}
    bench.call("Network_SecurityGroup", "addRules", [rule], identifier=group)
    first = bench.order("gpu-0", group)
    until(lambda: bench.provisioned(first))
    second = bench.order("gpu-1", group)
    until(lambda: bench.provisioned(second))

    def members_of_first() -> set[str]:
        access = bench.machines.access[first]
        assert access.public is None
        return {address for rule in access.private for address in rule.remote}

    until(lambda: members_of_first() == {"10.113.7.2/32", "10.113.7.3/32"})
    bench.call("Virtual_Guest", "deleteObject", identifier=second)
    until(lambda: second not in bench.account.store.guests)
    assert second not in bench.machines.running
    until(lambda: members_of_first() == {"10.113.7.2/32"})


def test_a_new_name_restarts_no_machine_and_a_reboot_restarts_it_once(bench):
    guest_id = bench.order("gpu-0")
    until(lambda: bench.provisioned(guest_id))
    bench.call("Virtual_Guest", "editObject", {"hostname": "renamed"}, identifier=guest_id)
    bench.call("Virtual_Guest", "setPrivateNetworkInterfaceSpeed", 10, identifier=guest_id)
    until(lambda: bench.machines.access[guest_id] == Access(private_mbps=10, public_mbps=1000))
    assert bench.machines.boots == [guest_id]
    bench.call("Virtual_Guest", "rebootDefault", identifier=guest_id)
    until(lambda: bench.machines.boots == [guest_id] * 2)
    assert guest_id in bench.machines.running


def test_an_order_that_fails_half_way_leaves_nothing_behind(bench):
    bench.account.settings = replace(bench.account.settings, private_subnets=("10.113.7.0/30",))  # room for one guest
    one = bench.call("Virtual_Guest", "generateOrderTemplate", template())
    both = [one["virtualGuests"][0] | {"hostname": name, "primaryBackendNetworkComponent": HERE} for name in ("a", "b")]
    with pytest.raises(Fault, match="no free address"):
        bench.call("Product_Order", "placeOrder", one | {"quantity": 2, "virtualGuests": both})
    store = bench.account.store
    assert (store.guests, store.billing_items, store.orders, store.vlans) == ({}, {}, {}, {})


def test_a_clock_that_fails_is_logged_shown_and_goes_on(bench, monkeypatch, caplog):
    def broken(account: Account, guest: Guest) -> None:
        guest.hostname = "half-changed"
        raise OSError("no space left on device")

    monkeypatch.setattr(machine_reconciler, "IDLE_TICK_S", 0.05)
    monkeypatch.setitem(transactions._ENDINGS, transactions.PROVISION, broken)
    with caplog.at_level(logging.ERROR, "emulator.shared.machine_reconciler"):
        guest_id = bench.order("gpu-0")
        until(lambda: bench.account.trouble)
    assert "Traceback" in caplog.text and "no space left on device" in caplog.text
    shown = status.as_text(status.status_of(bench.account, holdings, port=1))
    assert "trouble: Following the account's clock: OSError: no space left on device." in shown
    with pytest.raises(OSError, match="no space left"):
        bench.provisioned(guest_id)
    monkeypatch.undo()
    until(lambda: bench.provisioned(guest_id) and bench.account.trouble is None)
    assert bench.account.store.guests.read(guest_id).hostname == "gpu-0"


def test_a_boot_that_cannot_be_written_down_is_done_again(bench, monkeypatch):
    monkeypatch.setattr(machine_reconciler, "RETRY_S", 0.05)
    monkeypatch.setattr(machine_reconciler, "IDLE_TICK_S", 0.05)
    flush, full = bench.account.store.flush, threading.Event()

    def flush_while_there_is_room() -> bool:
        if full.is_set():
            raise OSError("no space left on device")
        return flush()

    monkeypatch.setattr(bench.account.store, "flush", flush_while_there_is_room)
    bench.machines.gate.clear()
    guest_id = bench.order("gpu-0")
    full.set()
    bench.machines.gate.set()
    until(lambda: len(bench.machines.boots) > 1)
    full.clear()
    until(lambda: bench.provisioned(guest_id))
