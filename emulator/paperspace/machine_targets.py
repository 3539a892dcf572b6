"""The machine behind each machine of the account, and the file server behind each shared drive."""

from emulator.machine_reconciler import MachineSource, Target
from emulator.machines.spec import MachineSpec, Share
from emulator.paperspace import lifecycle
from emulator.paperspace.account import Account
from emulator.paperspace.records import Drive, Machine
from emulator.paperspace.settings import BOX_IMAGE, DRIVE_IMAGE

DOMAIN = "paperspace.internal"
PRIVATE_MBPS = 10_000  # the vendor's page on networks
MIB_OF_GB = 1024


class MachineTargets(MachineSource):
    """What the machine reconciler asks of a Paperspace account."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def advance(self) -> bool:
        return lifecycle.advance(self._account)

    def next_moment(self) -> float | None:
        return lifecycle.next_moment(self._account)

    def ids(self) -> list[int]:
        """The machines and drives that exist or have to be removed."""
        store = self._account.store
        return [each.id for table in (store.machines, store.drives) for each in table.read_all()]

    def target(self, number: int) -> Target:
        store = self._account.store
        drive = store.drives.read(number)
        if drive:
            return Target(spec=None if drive.deleting else _drive_spec(self._account, drive))
        machine = store.machines.read(number)
        if machine.deleting:
            return Target(spec=None)
        return Target(
            spec=_machine_spec(self._account, machine),
            powered=machine.powered,
            boots=machine.boots,
            private_mbps=PRIVATE_MBPS,
        )

    def report(self, number: int, target: Target, error: str | None) -> None:
        store = self._account.store
        if number in store.drives:
            store.drives[number].error = error
            if target.spec is None and not error:
                del store.drives[number]
            return
        machine = store.machines[number]
        machine.error = error
        if not error and target == self.target(number):
            machine.reached = machine.revision


def _machine_spec(account: Account, machine: Machine) -> MachineSpec:
    kind = account.catalog.types[machine.machine_type]
    return MachineSpec(
        guest_id=machine.id,
        hostname=machine.ref,
        domain=DOMAIN,
        router_id=_network_number(account, machine.network_id),
        private_address=machine.private_ip,
        public_address=machine.public_ip,
        gpu_model=kind.gpu,
        gpu_count=kind.gpus,
        port_speed_mbps=PRIVATE_MBPS,
        image=BOX_IMAGE,
        gpu_memory_mib=kind.gpu_memory_gb * MIB_OF_GB,
        startup_script=machine.startup_script,
        filters_packets=True,
    )


def _drive_spec(account: Account, drive: Drive) -> MachineSpec:
    return MachineSpec(
        guest_id=drive.id,
        hostname=drive.ref,
        domain=DOMAIN,
        router_id=_network_number(account, drive.network_id),
        private_address=drive.address,
        port_speed_mbps=PRIVATE_MBPS,
        image=DRIVE_IMAGE,
        share=Share(drive.ref, drive.username, drive.password),
    )


def _network_number(account: Account, network_id: int) -> int:
    """The number by which the machines know a network: its subnet's place in the settings, from 1."""
    return account.store.networks.read(network_id).position + 1
