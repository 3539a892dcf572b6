"""Networks and public addresses of machines."""

from emulator.paperspace import billing
from emulator.paperspace.account import Account
from emulator.paperspace.errors import ApiError
from emulator.paperspace.records import Machine, Network, PublicIp

STATIC, DYNAMIC, NONE = "static", "dynamic", "none"


def new_network(account: Account, name: str, region: str, machine_id: int | None = None) -> Network:
    """A private network with a subnet that no other one has."""
    taken = {network.position for network in account.store.networks.read_all()}
    for position, subnet in enumerate(account.settings.private_subnets):
        if position not in taken:
            ref = account.new_ref("n")
            network = Network(account.next_id(), ref, name, region, subnet, position, account.now, machine_id)
            account.store.networks[network.id] = network
            return network
    raise ApiError(
        account.settings.capacity_code, "Every private network of this emulator is in use (setting private_subnets)."
    )


def claim(account: Account, region: str) -> PublicIp:
    """An address that stays, and is billed, until it is released."""
    claimed = PublicIp(account.next_id(), account.free_public_ip(), region, account.now)
    account.store.public_ips[claimed.id] = claimed
    billing.open_for(account, billing.ADDRESS, claimed, account.catalog.public_ip)
    return claimed


def assign(account: Account, claimed: PublicIp, machine: Machine) -> None:
    """Give a machine a claimed address."""
    claimed.machine_id = machine.id
    machine.public_ip, machine.public_ip_type = claimed.ip, STATIC
    machine.revision += 1


def unassign(account: Account, claimed: PublicIp) -> None:
    """Take a claimed address from the machine that has it."""
    if claimed.machine_id in account.store.machines:
        machine = account.store.machines[claimed.machine_id]
        machine.public_ip = None
        machine.revision += 1
    claimed.machine_id = None


def choose(account: Account, machine: Machine, public_ip_type: str) -> None:
    """Give a machine the kind of address that it was ordered with, or is to have from now on."""
    if public_ip_type == machine.public_ip_type and machine.public_ip:
        return
    held = _held(account, machine)
    if held:
        unassign(account, account.store.public_ips[held.id])
    machine.public_ip_type, machine.public_ip = public_ip_type, None
    if public_ip_type == STATIC:
        assign(account, claim(account, machine.region), machine)


def power_on(account: Account, machine: Machine) -> None:
    """A dynamic address is a new one at each start."""
    if machine.public_ip_type == DYNAMIC and machine.public_ip is None:
        machine.public_ip = account.free_public_ip()
        billing.open_for(account, billing.ADDRESS, machine, account.catalog.public_ip)


def power_off(account: Account, machine: Machine) -> None:
    """A dynamic address goes, and costs nothing, while the machine is off."""
    if machine.public_ip_type == DYNAMIC:
        machine.public_ip = None
        billing.close(account, machine.id, billing.ADDRESS)


def let_go(account: Account, machine: Machine) -> None:
    """The machine is gone: a claimed address stays in the team, and goes on being billed."""
    held = _held(account, machine)
    if held:
        account.store.public_ips[held.id].machine_id = None


def _held(account: Account, machine: Machine) -> PublicIp | None:
    return next((each for each in account.store.public_ips.read_all() if each.machine_id == machine.id), None)
