"""Containers as machines: an account's networks, registry, disks and containers."""

import shutil
import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import docker

from emulator.machines import host_tools, machine_mount, network_access
from emulator.machines.container import Containers
from emulator.machines.disks import DiskFolder
from emulator.machines.host_tools import connect
from emulator.machines.networks import Networks
from emulator.machines.registry import KEY_FILE, Registry
from emulator.machines.spec import MACHINE_IMAGE, Access, MachineError, Machines, MachineSpec

AT_THE_SAME_TIME = 8  # Machines that boot beyond this only make one another slower.
BOOT_S = 120


class ContainerMachines(Machines):
    """The machines of one account in containers; every method may be called from many threads."""

    def __init__(  # noqa: PLR0917 -- one argument for each setting
        self,
        account: str,
        state: Path,
        private_subnets: Mapping[int, str],
        public_subnet: str,
        registry_name: str,
        registry_port: int,
        images: tuple[str, ...] = (MACHINE_IMAGE,),
        pip_conf: str = "",
    ) -> None:
        """The machines have the settings ``pip_conf`` of pip.

        Args:
            registry_name: empty where the vendor has no registry.
            images: those of the machines, the first one for probes.
        """
        self._account, self._state = account, state.absolute()
        self._subnets, self._public_subnet = dict(private_subnets), public_subnet
        self._registry_name, self._registry_port = registry_name, registry_port
        self._images, self._pip_conf = images, pip_conf
        self._disks = DiskFolder(self._state / "disks")
        self._access: dict[int, Access] = {}
        self._locks: dict[int, threading.RLock] = {}
        self._starting = threading.BoundedSemaphore(AT_THE_SAME_TIME)

    def open(self) -> None:
        host_tools.require_all()
        self._containers.require_images(self._images)
        self._networks.ensure()
        if self._registry_name:
            self._registry.open()

    def require_way_to(self, port: int) -> None:
        """Fail if this host's firewall keeps machines from the API on ``port``, or from the registry."""
        ports = (port, self._registry_port) if self._registry_name else (port,)
        self._networks.require_way_here(self._images[0], ports)

    def boot(self, spec: MachineSpec) -> None:
        with self._lock(spec.guest_id), self._starting:
            disk_lines = self._disks.attach(spec.guest_id, spec.disks)
            given = machine_mount.files(spec, disk_lines, *self._registry_facts(), self._pip_conf)
            folder = self._folder(spec.guest_id) / "given"
            machine_mount.write(folder, given)
            self._containers.start(spec, folder)
            self._open_gate(spec.guest_id)
            look = f"`docker logs {self._account}-{spec.guest_id}`"
            what = f"port {spec.service_port} of {spec.hostname} ({spec.guest_id})"
            host_tools.wait_until(what, lambda: self._is_up(spec), BOOT_S, look=look)
            if not spec.share:
                self._containers.run_inside(spec.guest_id, ("/usr/local/lib/machine/devices",))

    def power_off(self, guest_id: int) -> None:
        with self._lock(guest_id):
            self._containers.stop(guest_id)

    def destroy(self, guest_id: int) -> None:
        with self._lock(guest_id), self._starting:
            self._containers.remove(guest_id)
            self._disks.remove(guest_id)
            shutil.rmtree(self._folder(guest_id), ignore_errors=True)

    def restrict(self, guest_id: int, access: Access) -> None:
        with self._lock(guest_id):
            self._access[guest_id] = access
            if machine := self._containers.attachment(guest_id):
                network_access.apply(machine, access)

    def alive(self) -> set[int]:
        return self._containers.guests(running=True)

    def close(self) -> None:
        if self._registry_name:
            self._registry.close()

    def reset(self) -> None:
        self.close()
        for guest_id in self._containers.guests(running=False):
            self.destroy(guest_id)
        self._containers.remove_volumes()
        self._networks.remove_all()
        self._disks.remove_all()
        for folder in ("disks", "machines", "registry"):
            shutil.rmtree(self._state / folder, ignore_errors=True)
        (self._state / KEY_FILE).unlink(missing_ok=True)

    @cached_property
    def _docker(self) -> docker.DockerClient:
        return connect()

    @cached_property
    def _networks(self) -> Networks:
        return Networks(self._docker, self._account, self._state, self._subnets, self._public_subnet)

    @cached_property
    def _containers(self) -> Containers:
        hosts = {self._registry_name: self._networks.services} if self._registry_name else {}
        return Containers(self._docker, self._account, self._networks, hosts)

    @cached_property
    def _registry(self) -> Registry:
        return Registry(self._state, self._registry_name, self._networks.services, self._registry_port)

    def _registry_facts(self) -> tuple[str, str]:
        return (self._registry.reference, self._registry.authority) if self._registry_name else ("", "")

    def _lock(self, guest_id: int) -> threading.RLock:
        return self._locks.setdefault(guest_id, threading.RLock())  # One step, unlike a defaultdict's.

    def _folder(self, guest_id: int) -> Path:
        return self._state / "machines" / str(guest_id)

    def _open_gate(self, guest_id: int) -> None:
        """Give a started machine its rules, then open its gate; one that somebody else starts has to be booted again."""
        with self._lock(guest_id):
            machine = self._containers.attachment(guest_id)
            gate = self._folder(guest_id) / "given" / machine_mount.GATE
            if machine is None or (gate.exists() and gate.read_text() == network_access.this_start(machine.pid)):
                return
            network_access.apply(machine, self._access.get(guest_id, Access()))
            host_tools.write_private(gate, network_access.this_start(machine.pid))

    def _is_up(self, spec: MachineSpec) -> bool:
        machine = self._containers.attachment(spec.guest_id)
        if machine is None:
            log = self._containers.last_log_lines(spec.guest_id)
            raise MachineError(f"Booting machine {spec.guest_id} ({spec.hostname}): it stopped: {log}")
        return network_access.listens(machine.pid, spec.service_port)
