"""Life cycle of machines: phases and events by the account's clock, and the target of the container behind each."""

from emulator.machines.spec import Access, MachineSpec, Share
from emulator.paperspace import billing, networks
from emulator.paperspace.account import Account
from emulator.paperspace.records import Drive, Event, Machine, Phase
from emulator.paperspace.settings import BOX_IMAGE, DRIVE_IMAGE
from emulator.shared.machine_reconciler import MachineSource, Target

OFF, READY, SERVICE_READY = "off", "ready", "serviceready"
STARTING, STOPPING, PROVISIONING = "starting", "stopping", "provisioning"
STARTING_S, SERVICE_READY_S, STOPPING_S, DEACTIVATING_S = 5.0, 1.0, 3.0, 3.0
GONE = ""  # where a deleted machine settles
RUNNING = (READY, SERVICE_READY)
DOMAIN = "paperspace.internal"
ACCESS = Access(private_mbps=10_000)  # the vendor's page on networks
MIB_OF_GB = 1024
IN_PROGRESS, DONE, ERROR = "in progress", "done", "error"


def provision(account: Account, machine: Machine) -> Event:
    """Begin to build a machine, and to start it."""
    settings, create = account.settings, new_event(account, machine, "create")
    phases = [Phase(PROVISIONING, settings.provisioning_s, create.id)]
    failing = settings.failed_rate
    if failing and account.fault_injector.random_for("failed", machine.name).random() < failing:
        machine.failed = True
    else:
        phases += _starting(new_event(account, machine, "start"))
        _boot(account, machine)
    _begin(account, machine, phases, READY)
    return create


def start(account: Account, machine: Machine) -> Event:
    """Begin to start a machine that is off."""
    event = new_event(account, machine, "start")
    networks.power_on(account, machine)
    _begin(account, machine, _starting(event), READY)
    _boot(account, machine)
    return event


def stop(account: Account, machine: Machine) -> Event:
    """Begin to stop a machine that runs."""
    event = new_event(account, machine, "stop")
    _begin(account, machine, [Phase(STOPPING, STOPPING_S, event.id, waits=True)], OFF)
    machine.powered = False
    return event


def deactivate(account: Account, machine: Machine) -> Event:
    """Begin to remove a machine; no state of the API says so."""
    event = new_event(account, machine, "deactivate")
    state = STOPPING if machine.powered else machine.state
    _begin(account, machine, [Phase(state, DEACTIVATING_S, event.id, waits=True)], GONE)
    machine.deleting, machine.powered = True, False
    return event


def new_event(account: Account, machine: Machine, name: str) -> Event:
    """Record that something was asked of a machine."""
    event = Event(account.next_id(), account.token(), name, machine.ref, account.now)
    account.store.events[event.id] = event
    return event


def advance(account: Account) -> bool:
    """Do and save everything that is due, or nothing of it; return whether anything was."""
    if not _due(account):
        return False
    with account.change():
        while due := _due(account):
            for machine_id in due:
                _end_phase(account, account.store.machines[machine_id])
    return True


def next_moment(account: Account) -> float | None:
    """The next moment at which the clock alone ends a phase of a machine."""
    ends = (each.since + each.phases[0].seconds for each in account.store.machines.read_all() if each.phases)
    return min((moment for moment in ends if moment > account.now), default=None)


def _starting(event: Event) -> list[Phase]:
    return [Phase(STARTING, STARTING_S, event.id, waits=True), Phase(SERVICE_READY, SERVICE_READY_S, event.id)]


def _boot(account: Account, machine: Machine) -> None:
    """Let the machine behind boot, with the startup script that it gets: one that runs once is handed out a single time."""
    machine.powered, machine.boots, machine.startup_script = True, machine.boots + 1, ""
    for script in list(account.store.scripts.values()):
        if machine.id in script.machine_ids and not (script.is_run_once and machine.id in script.served_ids):
            machine.startup_script = script.text
            script.served_ids.append(machine.id)


def _begin(account: Account, machine: Machine, phases: list[Phase], settles: str) -> None:
    """Put work in place of what a machine was doing; that is then cancelled."""
    for phase in machine.phases:
        event = account.store.events[phase.event_id]
        if event.finished is None:
            event.state, event.finished = "cancelled", account.now
    machine.phases, machine.settles, machine.failed = list(phases), settles, machine.failed and settles != GONE
    machine.revision += 1
    _begin_phase(account, machine, account.now)


def _begin_phase(account: Account, machine: Machine, moment: float) -> None:
    phase = machine.phases[0]
    machine.state, machine.since, machine.modified = phase.state, moment, moment
    event = account.store.events[phase.event_id]
    if event.started is None:
        event.state, event.started = IN_PROGRESS, moment


def _due(account: Account) -> list[int]:
    return [each.id for each in account.store.machines.read_all() if _is_due(account, each)]


def _is_due(account: Account, machine: Machine) -> bool:
    if not machine.phases or account.now < machine.since + machine.phases[0].seconds:
        return False
    waits = machine.phases[0].waits and account.waits_for_machines
    return not waits or machine.reached >= machine.revision


def _end_phase(account: Account, machine: Machine) -> None:
    """End the first phase at the moment when it was over, and begin the next one."""
    phase = machine.phases.pop(0)
    over = account.now if phase.waits and account.waits_for_machines else machine.since + phase.seconds
    event = account.store.events[phase.event_id]
    if machine.failed:
        # The state has no word for it: the machine looks as if it were still being built.
        event.state, event.finished = ERROR, over
        return
    if not any(later.event_id == event.id for later in machine.phases):
        event.state, event.finished = DONE, over
    if machine.phases:
        _begin_phase(account, machine, over)
    elif machine.settles == GONE:
        _remove(account, machine)
    else:
        _settle(account, machine, over)


def _settle(account: Account, machine: Machine, moment: float) -> None:
    machine.state, machine.modified = machine.settles, moment
    if machine.state == OFF:
        networks.power_off(account, machine)


def _remove(account: Account, machine: Machine) -> None:
    networks.let_go(account, machine)
    billing.close(account, machine.id)
    for script in list(account.store.scripts.values()):
        script.machine_ids = [each for each in script.machine_ids if each != machine.id]
    del account.store.machines[machine.id]


class MachineTargets(MachineSource):
    """The machine behind each machine of the account, and the file server behind each shared drive."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def advance(self) -> bool:
        return advance(self._account)

    def next_moment(self) -> float | None:
        return next_moment(self._account)

    def ids(self) -> list[int]:
        """The machines and drives that exist or have to be removed."""
        store = self._account.store
        return [each.id for table in (store.machines, store.drives) for each in table.read_all()]

    def target(self, number: int) -> Target:
        store = self._account.store
        drive = store.drives.read(number)
        if drive:
            return Target(spec=None if drive.is_hidden else _drive_spec(self._account, drive))
        machine = store.machines.read(number)
        if machine.deleting:
            return Target(spec=None)
        return Target(
            spec=_machine_spec(self._account, machine),
            powered=machine.powered,
            boots=machine.boots,
            access=ACCESS,
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
        image=DRIVE_IMAGE,
        share=Share(drive.ref, drive.username, drive.password),
    )


def _network_number(account: Account, network_id: int) -> int:
    """The number by which the machines know a network: its subnet's place in the settings, from 1."""
    return account.store.networks.read(network_id).position + 1
