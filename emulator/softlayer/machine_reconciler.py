"""The workers that make the machines follow the account: booting, changing and removing them in the background."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from emulator.machines import Disk, MachineError, Machines, MachineSpec, Rule
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.records import Guest
from emulator.softlayer.rules import rules_of

LOG = logging.getLogger("emulator.softlayer.machine_reconciler")
RETRY_S = 30.0  # a machine that failed is tried again after this time, for the cause may be gone
IDLE_TICK_S = 5.0  # the clock is looked at this often even when nothing is due


@dataclass(frozen=True)
class Target:
    """What the machine of one guest has to be like."""

    spec: MachineSpec | None  # None: it has to be gone
    powered: bool = True
    boots: int = 0
    private: tuple[Rule, ...] | None = None
    public: tuple[Rule, ...] | None = None
    private_mbps: int = 0
    public_mbps: int = 0


class Crew:
    """One worker at a time per guest; it acts without the account's lock and reports back under it."""

    def __init__(self, account: Account, machines: Machines) -> None:
        self._account = account
        self._machines = machines
        self._pool = ThreadPoolExecutor(account.settings.boot_workers, thread_name_prefix="machines")
        self._reached: dict[int, Target] = {}
        self._failed: dict[int, tuple[Target, float]] = {}
        self._busy: set[int] = set()
        self._known: set[int] = set()
        self._bell = threading.Event()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="clock", daemon=True)

    def start(self) -> None:
        """Follow the account from now on; living machines are booted again, which changes nothing on those that run."""
        self._account.changed = self._bell.set
        self._ticker.start()
        self._bell.set()

    def stop(self) -> None:
        """Finish what is under way and leave the machines running."""
        self._over.set()
        self._bell.set()
        self._ticker.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _tick(self) -> None:
        while not self._over.is_set():
            self._bell.clear()
            with self._account.lock:
                pause = self._step()
            if pause is None:
                # Not the bell: every call rings it, and each time the same failure would be logged again.
                self._over.wait(IDLE_TICK_S)
            else:
                self._bell.wait(min(IDLE_TICK_S, pause + 0.001))

    def _step(self) -> float | None:
        """Do what is due and tell the seconds until the next step; None when it failed, so that it has to be repeated."""
        account = self._account
        try:
            transactions.advance(account)
            self._dispatch()
            moment = transactions.next_moment(account)
            pause = IDLE_TICK_S if moment is None else account.clock.real_seconds_until(moment)
        except Exception as failed:  # noqa: BLE001 - a clock that dies would leave every guest in provisioning without a word
            LOG.exception("the clock failed; it is tried again in %g s", IDLE_TICK_S)
            account.trouble = (
                f"Following the account's clock: {type(failed).__name__}: {failed}. It is tried again every "
                f"{IDLE_TICK_S:g} s; the whole story is in emulator.log."
            )
            return None
        account.trouble = None
        return pause

    def _dispatch(self) -> None:
        """Give every guest whose machine is not as wanted to a worker."""
        guests = {guest.id: guest for guest in self._account.store.guests.look() if _has_machine(guest)}
        for guest_id in self._reached.keys() - guests.keys():
            del self._reached[guest_id]
        for guest_id, guest in guests.items():
            if guest_id not in self._busy:
                target = self._target(guest)
                if target != self._reached.get(guest_id) and not self._pauses(guest_id, target):
                    self._busy.add(guest_id)
                    self._pool.submit(self._follow, guest_id)

    def _pauses(self, guest_id: int, target: Target) -> bool:
        failed, moment = self._failed.get(guest_id, (None, 0.0))
        return failed == target and time.monotonic() < moment + RETRY_S

    def _follow(self, guest_id: int) -> None:
        """Bring one machine to its target as it is by the time a worker is free."""
        with self._account.lock:
            guest = self._account.store.guests[guest_id]
            target, before = self._target(guest), self._reached.get(guest_id)
        error = None
        try:
            self._reach(guest_id, target, before)
        except MachineError as failed:
            error = str(failed)
        except Exception as failed:  # noqa: BLE001 - a worker that dies would leave its guest stuck without a word
            error = f"{type(failed).__name__}: {failed}"
            LOG.exception("guest %s: unexpected failure", guest_id)
        with self._account.lock:
            try:
                self._report(guest_id, target, error)
                self._account.store.flush()
            except Exception:  # noqa: BLE001 - the same; what could not be written down is done again
                LOG.exception("guest %s: what became of its machine cannot be written down", guest_id)
                self._account.store.rollback()
                self._reached.pop(guest_id, None)
                self._failed[guest_id] = (target, time.monotonic())
        self._bell.set()

    def _report(self, guest_id: int, target: Target, error: str | None) -> None:
        self._busy.discard(guest_id)
        guest = self._account.store.guests[guest_id]
        guest.machine_error = error
        if error:
            LOG.error("guest %s (%s): %s", guest_id, guest.name, error)
            self._failed[guest_id] = (target, time.monotonic())
            return
        self._failed.pop(guest_id, None)
        self._reached[guest_id] = target
        if target.spec is None:
            guest.machine_gone = True
        elif target.powered:
            guest.boots_done = target.boots

    def _reach(self, guest_id: int, target: Target, before: Target | None) -> None:
        if target.spec is None:
            self._machines.destroy(guest_id)
            return
        if not target.powered or (before and before.powered and before.boots != target.boots):
            self._machines.power_off(guest_id)
        if not target.powered:
            return
        # Rules and speed come first, so that a machine is never reachable without them.
        if before is None or (before.private, before.public) != (target.private, target.public):
            self._machines.restrict(guest_id, target.private, target.public)
        if before is None or (before.private_mbps, before.public_mbps) != (target.private_mbps, target.public_mbps):
            self._machines.set_port_speed(guest_id, target.private_mbps, target.public_mbps)
        # A new name or new user data alone starts nothing: the machine learns of them when it boots next.
        if before is None or not before.powered or before.boots != target.boots:
            self._machines.boot(target.spec)

    def _target(self, guest: Guest) -> Target:
        if guest.cancelled is not None:
            return Target(spec=None)
        return Target(
            spec=_spec(self._account, guest),
            powered=guest.powered,
            boots=guest.boots_wanted,
            private=rules_of(self._account, guest.private),
            public=rules_of(self._account, guest.public),
            private_mbps=guest.private.max_speed,
            public_mbps=guest.public.max_speed if guest.public else 0,
        )


def _has_machine(guest: Guest) -> bool:
    """Whether a machine stands behind a guest, or has to go: not while its order waits."""
    return guest.is_begun or guest.cancelled is not None


def _spec(account: Account, guest: Guest) -> MachineSpec:
    flavor = account.flavor_of(guest)
    return MachineSpec(
        guest_id=guest.id,
        hostname=guest.hostname,
        domain=guest.domain,
        router_id=account.store.vlans[guest.private.vlan_id].network,
        private_address=guest.private.address,
        public_address=guest.public.address if guest.public else None,
        cores=flavor.cores,
        memory_gb=flavor.memory_gb,
        gpu_model=flavor.gpu_model,
        gpu_count=flavor.gpu_count,
        disks=tuple(Disk(disk.device, disk.capacity_gb) for disk in guest.disks if disk.device > 1),
        ssh_keys=tuple(guest.ssh_keys),
        user_data=guest.user_data,
        port_speed_mbps=guest.private.max_speed,
        root_password=guest.password,
    )
