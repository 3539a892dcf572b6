"""Background workers that boot, change and remove machines until they match the account."""

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from emulator.machines.spec import Access, MachineError, Machines, MachineSpec
from emulator.shared.account import EmulatedAccount

LOG = logging.getLogger(__name__)
RETRY_S = 30.0  # a machine that failed is tried again after this time: the cause may be gone
IDLE_TICK_S = 5.0  # the clock is read this often even when nothing is due


@dataclass(frozen=True)
class Target:
    """The state that one machine has to reach."""

    spec: MachineSpec | None  # None: it has to be removed
    powered: bool = True
    boots: int = 0
    access: Access = Access()


class MachineSource(Protocol):
    """A vendor's account as the source of the machines' targets; the caller holds the account's lock."""

    def advance(self) -> bool:
        """Do what is due on the account's clock; return whether anything was."""

    def next_moment(self) -> float | None:
        """The next moment at which the clock alone changes something; None if there is no such moment."""

    def ids(self) -> list[int]:
        """The machines that have to exist or to be removed."""

    def target(self, machine_id: int) -> Target:
        """The state that a machine has to reach."""

    def report(self, machine_id: int, target: Target, error: str | None) -> None:
        """Record that a machine has reached its target, or why not."""


class MachineReconciler:
    """One worker at a time per machine; it acts without the account's lock and reports back under it."""

    def __init__(self, account: EmulatedAccount, source: MachineSource, machines: Machines) -> None:
        self._account, self._source, self._machines = account, source, machines
        self._pool = ThreadPoolExecutor(account.settings.boot_workers, thread_name_prefix="machines")
        self._reached: dict[int, Target] = {}
        self._failed: dict[int, tuple[Target, float]] = {}
        self._busy: set[int] = set()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="clock", daemon=True)

    def start(self) -> None:
        """Follow the account from now on; booting a machine that runs changes nothing."""
        self._account.changed = self._wake.set
        self._ticker.start()
        self._wake.set()

    def stop(self) -> None:
        """Finish what is under way and leave the machines running."""
        self._stopped.set()
        self._wake.set()
        self._ticker.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _tick(self) -> None:
        while not self._stopped.is_set():
            self._wake.clear()
            with self._account.lock:
                pause = self._step()
            if pause is None:
                # Calls set ``_wake``: waiting for it would log the same failure at every call.
                self._stopped.wait(IDLE_TICK_S)
            else:
                self._wake.wait(min(IDLE_TICK_S, pause + 0.001))

    def _step(self) -> float | None:
        """Do what is due; return the seconds until the next step, or None when it failed."""
        try:
            self._source.advance()
            self._dispatch()
            moment = self._source.next_moment()
            pause = IDLE_TICK_S if moment is None else self._account.clock.real_seconds_until(moment)
        except Exception as failed:  # noqa: BLE001 - a dead clock would leave every machine in provisioning, unexplained
            LOG.exception("the clock failed; it is tried again in %g s", IDLE_TICK_S)
            self._account.trouble = (
                f"Following the account's clock: {type(failed).__name__}: {failed}. It is tried again every "
                f"{IDLE_TICK_S:g} s; emulator.log has the traceback."
            )
            return None
        self._account.trouble = None
        return pause

    def _dispatch(self) -> None:
        """Give every machine that is not at its target to a worker."""
        machine_ids = self._source.ids()
        for machine_id in self._reached.keys() - set(machine_ids):
            del self._reached[machine_id]
        for machine_id in machine_ids:
            if machine_id not in self._busy and self._is_due(machine_id, self._source.target(machine_id)):
                self._busy.add(machine_id)
                self._pool.submit(self._reconcile, machine_id)

    def _is_due(self, machine_id: int, target: Target) -> bool:
        failed, moment = self._failed.get(machine_id, (None, 0.0))
        pauses = failed == target and time.monotonic() < moment + RETRY_S
        return target != self._reached.get(machine_id) and not pauses

    def _reconcile(self, machine_id: int) -> None:
        """Bring one machine to its target, as the target is when a worker is free."""
        with self._account.lock:
            target, reached = self._source.target(machine_id), self._reached.get(machine_id)
        error = None
        try:
            self._reach(machine_id, target, reached)
        except MachineError as failed:
            error = str(failed)
        except Exception as failed:  # noqa: BLE001 - a dead worker would leave its machine stuck, unexplained
            error = f"{type(failed).__name__}: {failed}"
            LOG.exception("machine %s: unexpected failure", machine_id)
        with self._account.lock:
            try:
                self._report(machine_id, target, error)
                self._account.store.flush()
            except Exception:  # noqa: BLE001 - the same; what could not be recorded is done again
                LOG.exception("machine %s: its state cannot be recorded", machine_id)
                self._account.store.rollback()
                self._reached.pop(machine_id, None)
                self._failed[machine_id] = (target, time.monotonic())
        self._wake.set()

    def _report(self, machine_id: int, target: Target, error: str | None) -> None:
        self._busy.discard(machine_id)
        self._source.report(machine_id, target, error)
        if error:
            LOG.error("machine %s: %s", machine_id, error)
            self._failed[machine_id] = (target, time.monotonic())
        else:
            self._failed.pop(machine_id, None)
            self._reached[machine_id] = target

    def _reach(self, machine_id: int, target: Target, before: Target | None) -> None:
        if target.spec is None:
            self._machines.destroy(machine_id)
            return
        if not target.powered or (before and before.powered and before.boots != target.boots):
            self._machines.power_off(machine_id)
        if not target.powered:
            return
        # Rules and speed come first, so that a machine is never reachable without them.
        if before is None or before.access != target.access:
            self._machines.restrict(machine_id, target.access)
        # A new name or new user data restarts nothing: the machine reads them when it boots next.
        if before is None or not before.powered or before.boots != target.boots:
            self._machines.boot(target.spec)
