"""What happens to machines as the account's clock goes on: phases with a state, and the events that they belong to."""

from emulator.paperspace import addresses, billing
from emulator.paperspace.account import Account
from emulator.paperspace.records import Event, Machine, Phase, Upgrade

OFF, READY, SERVICE_READY = "off", "ready", "serviceready"
STARTING, STOPPING, RESTARTING, UPGRADING, PROVISIONING = (
    "starting",
    "stopping",
    "restarting",
    "upgrading",
    "provisioning",
)
GONE = ""  # where a deleted machine settles
RUNNING = (READY, SERVICE_READY)
IN_PROGRESS, DONE, ERROR = "in progress", "done", "error"


def provision(account: Account, machine: Machine, *, start: bool) -> Event:
    """Begin to build a machine, and to start it where that is wanted."""
    settings, create = account.settings, new_event(account, machine, "create")
    phases = [Phase(PROVISIONING, settings.provisioning_s, create.id)]
    failing = settings.failed_rate
    if failing and account.fault_injector.random_for("failed", machine.name).random() < failing:
        machine.failed = True
    elif start:
        phases += _starting(account, new_event(account, machine, "start"))
    _begin(account, machine, phases, READY if start and not machine.failed else OFF)
    if start and not machine.failed:
        _boot(account, machine)
    return create


def start(account: Account, machine: Machine) -> Event:
    """Begin to start a machine that is off."""
    event = new_event(account, machine, "start")
    addresses.power_on(account, machine)
    _begin(account, machine, _starting(account, event), READY)
    _boot(account, machine)
    if not billing.is_open(account, machine.id, billing.MACHINE):
        billing.open_for(account, billing.MACHINE, machine, account.catalog.types[machine.machine_type].per_hour)
    return event


def stop(account: Account, machine: Machine) -> Event:
    """Begin to stop a machine that runs."""
    event = new_event(account, machine, "stop")
    _begin(account, machine, [Phase(STOPPING, account.settings.stopping_s, event.id, waits=True)], OFF)
    machine.powered = False
    return event


def restart(account: Account, machine: Machine) -> Event:
    """Begin to restart a machine; for a while it still looks ready."""
    settings, event = account.settings, new_event(account, machine, "restart")
    lag = Phase(READY, settings.restart_lag_s, event.id, is_lag=True)
    _begin(account, machine, [lag, Phase(RESTARTING, settings.starting_s, event.id, waits=True)], READY)
    _boot(account, machine)
    return event


def change(account: Account, machine: Machine, upgrade: Upgrade) -> Event:
    """Begin to give a machine that is off another type or a larger disk."""
    event = new_event(account, machine, "vm-upgrade")
    _begin(account, machine, [Phase(UPGRADING, account.settings.upgrading_s, event.id)], OFF)
    machine.upgrade = upgrade
    return event


def deactivate(account: Account, machine: Machine) -> Event:
    """Begin to remove a machine; no state of the API says so."""
    event = new_event(account, machine, "deactivate")
    state = STOPPING if machine.powered else machine.state
    _begin(account, machine, [Phase(state, account.settings.deactivating_s, event.id, waits=True)], GONE)
    machine.deleting, machine.powered = True, False
    return event


def new_event(account: Account, machine: Machine, name: str) -> Event:
    """Record that something was asked of a machine."""
    event = Event(account.next_id(), account.token(), name, machine.ref, account.now)
    account.store.events[event.id] = event
    return event


def advance(account: Account) -> bool:
    """Do and save everything that is due, or nothing of it; return whether anything was."""
    try:
        happened = False
        while due := [each.id for each in account.store.machines.read_all() if _is_due(account, each)]:
            happened = True
            for machine_id in due:
                _end_phase(account, account.store.machines[machine_id])
        if happened:
            account.store.flush()
    except BaseException:
        account.store.rollback()
        raise
    return happened


def next_moment(account: Account) -> float | None:
    """When the clock alone makes something happen next."""
    ends = (each.since + each.phases[0].seconds for each in account.store.machines.read_all() if each.phases)
    return min((moment for moment in ends if moment > account.now), default=None)


def _starting(account: Account, event: Event) -> list[Phase]:
    settings = account.settings
    return [
        Phase(STARTING, settings.starting_s, event.id, waits=True),
        Phase(SERVICE_READY, settings.serviceready_s, event.id),
    ]


def _boot(account: Account, machine: Machine) -> None:
    """Let the machine behind boot, with the startup script that it gets: one that runs once is handed out a single time."""
    machine.powered, machine.boots, machine.startup_script = True, machine.boots + 1, ""
    for script in list(account.store.scripts.values()):
        is_due = machine.id in script.machine_ids and script.is_enabled
        if is_due and not (script.is_run_once and machine.id in script.served_ids):
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
    if event.started is None and not phase.is_lag:
        event.state, event.started = IN_PROGRESS, moment


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
    if machine.upgrade:
        _end_upgrade(account, machine, machine.upgrade)
    if machine.state == OFF:
        addresses.power_off(account, machine)
        if not account.settings.off_is_billed:
            billing.close(account, machine.id, billing.MACHINE)


def _end_upgrade(account: Account, machine: Machine, upgrade: Upgrade) -> None:
    catalog, machine.upgrade = account.catalog, None
    if upgrade.machine_type != machine.machine_type:
        machine.machine_type = upgrade.machine_type
        if billing.is_open(account, machine.id, billing.MACHINE):
            billing.close(account, machine.id, billing.MACHINE)
            billing.open_for(account, billing.MACHINE, machine, catalog.types[upgrade.machine_type].per_hour)
    if upgrade.disk_gb != machine.disk_gb:
        machine.disk_gb = upgrade.disk_gb
        billing.close(account, machine.id, billing.DISK)
        billing.open_for(account, billing.DISK, machine, catalog.disks[upgrade.disk_gb])


def _remove(account: Account, machine: Machine) -> None:
    addresses.let_go(account, machine)
    billing.close(account, machine.id)
    for script in list(account.store.scripts.values()):
        script.machine_ids = [each for each in script.machine_ids if each != machine.id]
    network = account.store.networks.read(machine.network_id)
    if network and network.machine_id == machine.id:
        del account.store.networks[network.id]
    del account.store.machines[machine.id]
