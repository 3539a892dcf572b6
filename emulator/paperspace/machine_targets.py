"""The machine behind each machine of the account, and the server behind each drive."""

from __future__ import annotations

from emulator.machine_reconciler import Target
from emulator.machines import MachineSpec
from emulator.paperspace import lifecycle
from emulator.paperspace.account import Account
from emulator.paperspace.records import Machine

USER = "paperspace"
DOMAIN = "paperspace.internal"
PRIVATE_MBPS = 10_000  # the vendor's page on networks


class MachineTargets:
    """What the machine reconciler asks of a Paperspace account."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def advance(self) -> bool:
        """Do what is due on the account's clock; return whether anything was."""
        return lifecycle.advance(self._account)

    def next_moment(self) -> float | None:
        """When the clock alone makes something happen next."""
        return lifecycle.next_moment(self._account)

    def ids(self) -> list[int]:
        """The machines that exist or have to be removed."""
        return [machine.id for machine in self._account.store.machines.read_all()]

    def target(self, machine_id: int) -> Target:
        """The state that a machine has to reach."""
        machine = self._account.store.machines.read(machine_id)
        if machine.deleting:
            return Target(spec=None)
        return Target(
            spec=_machine_spec(self._account, machine),
            powered=machine.powered,
            boots=machine.boots,
            private_mbps=PRIVATE_MBPS,
            public_mbps=0,
        )

    def report(self, machine_id: int, target: Target, error: str | None) -> None:
        """Record that a machine has reached its target, or why not."""
        machine = self._account.store.machines[machine_id]
        machine.error = error
        if not error and target == self.target(machine_id):
            machine.reached = machine.revision


def _machine_spec(account: Account, machine: Machine) -> MachineSpec:
    kind = account.catalog.types[machine.machine_type]
    return MachineSpec(
        guest_id=machine.id,
        hostname=machine.ref,
        domain=DOMAIN,
        router_id=account.store.networks.read(machine.network_id).position + 1,
        private_address=machine.private_ip,
        public_address=machine.public_ip,
        cores=kind.cores,
        memory_gb=max(1, int(kind.memory_gb)),
        gpu_model=None,
        gpu_count=0,
        disks=(),
        ssh_keys=tuple(machine.ssh_keys),
        user_data="",
        port_speed_mbps=PRIVATE_MBPS,
    )
