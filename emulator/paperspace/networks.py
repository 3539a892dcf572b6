"""Private networks, the addresses of machines in public, and the shared drives: one /24 in one region, chosen by the service."""

import secrets

from emulator.paperspace import billing, views
from emulator.paperspace.account import Account
from emulator.paperspace.errors import CAPACITY_CODE, ApiError, conflict, refused
from emulator.paperspace.operations import Call, Operation, Size, Things, View, inputs, listing
from emulator.paperspace.records import Drive, Machine, Network, PublicIp

PASSWORD_BYTES = 12
STATIC, DYNAMIC, NONE = "static", "dynamic", "none"
NETWORKS, DRIVES = Things("networks", views.network), Things("drives", views.drive)


def choose_public_ip(account: Account, machine: Machine, public_ip_type: str) -> None:
    """Give a machine the kind of address that it was ordered with, or is to have from now on."""
    if public_ip_type == machine.public_ip_type and machine.public_ip:
        return
    let_go(account, machine)
    machine.public_ip_type, machine.public_ip = public_ip_type, None
    if public_ip_type == STATIC:
        machine.public_ip = account.free_public_ip()
        claimed = PublicIp(account.next_id(), machine.public_ip, machine.region, account.now, machine.id)
        account.store.public_ips[claimed.id] = claimed
        billing.open_for(account, billing.ADDRESS, claimed, account.catalog.public_ip)


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
    """Take a machine's claimed address from it: that stays in the team, and goes on being billed."""
    for each in list(account.store.public_ips.read_all()):
        if each.machine_id == machine.id:
            account.store.public_ips[each.id].machine_id = None


def find_public_ips(account: Account, call: Call) -> list[View]:
    """The claimed addresses."""
    return [views.public_ip(account, each) for each in account.store.public_ips.values()]


def release_public_ip(account: Account, call: Call) -> View:
    """Release an address, also while a machine has it."""
    claimed = account.find("public_ips", call.path["ip"])
    if claimed.machine_id in account.store.machines:
        account.store.machines[claimed.machine_id].public_ip = None
    billing.close(account, claimed.id)
    del account.store.public_ips[claimed.id]
    return {"ip": claimed.ref}


def create_network(account: Account, call: Call) -> View:
    """Create a network with a subnet that no other one has; it answers at once."""
    name, region = call.input["name"], account.region(call.input["region"])
    taken = {network.position for network in account.store.networks.read_all()}
    for position, subnet in enumerate(account.settings.private_subnets):
        if position not in taken:
            ref = account.new_ref("n")
            network = Network(account.next_id(), ref, name, region, subnet, position, account.now)
            account.store.networks[network.id] = network
            billing.open_for(account, billing.NETWORK, network, account.catalog.network)
            return views.network(account, network)
    raise ApiError(CAPACITY_CODE, "Every private network of this emulator is in use (setting private_subnets).")


def get_network(account: Account, call: Call) -> View | None:
    """One network; null for an unknown id."""
    try:
        return NETWORKS.get(account, call)
    except ApiError:
        return None


def delete_network(account: Account, call: Call) -> View:
    """Delete a network that has no machine and no drive."""
    network = NETWORKS.one(account, call)
    tables = (account.store.machines, account.store.drives)
    held = [each.ref for table in tables for each in table.read_all() if each.network_id == network.id]
    if held:
        raise conflict(f"Private network {network.ref} is in use by {', '.join(held)}.")
    billing.close(account, network.id)
    del account.store.networks[network.id]
    return {"id": network.ref}


def in_region(account: Account, ref: str, region: str) -> Network:
    """A network for what is to stand in a region."""
    network = account.find("networks", ref)
    if network.region != region:
        raise refused(f"Private network {network.ref} is in region {network.region}, not in {region}.")
    return network


def create_drive(account: Account, call: Call) -> View:
    """Create a drive; it answers at once, and its server comes up a little later."""
    fields = call.input
    region = account.region(fields["region"])
    network = in_region(account, fields["networkId"], region)
    if fields["size"] not in account.catalog.drives:
        sold = ", ".join(map(str, account.catalog.drives))
        raise refused(f"A drive of {fields['size']:g} GB is not sold. Use one of {sold}.")
    drive = Drive(
        id=account.next_id(),
        ref=account.new_ref("sd"),
        name=fields["name"],
        region=region,
        network_id=network.id,
        size_gb=int(fields["size"]),
        address=account.free_private_ip(network),
        username=account.new_ref("u"),
        password=secrets.token_urlsafe(PASSWORD_BYTES),  # no part of what a seed repeats
        created=account.now,
    )
    account.store.drives[drive.id] = drive
    billing.open_for(account, billing.DRIVE, drive, account.catalog.drives[drive.size_gb])
    return views.drive(account, drive)


def delete_drive(account: Account, call: Call) -> View:
    """Delete a drive with everything on it, mounted or not."""
    drive = DRIVES.one(account, call)
    billing.close(account, drive.id)
    if account.settings.machines == "none":
        del account.store.drives[drive.id]
    else:
        drive.is_hidden = True
    return {"id": drive.ref}


_NAME, _NEW_NETWORK = inputs({}, {"name": str}), inputs({"name": str, "region": str}, {})
_NEW_DRIVE = inputs({"name": str, "size": Size, "region": str, "networkId": str}, {})
OPERATIONS = (
    Operation("privateNetworks-create", "POST", "/private-networks", create_network, _NEW_NETWORK),
    listing("privateNetworks-list", "/private-networks", NETWORKS.list, ("dtCreated", "name")),
    Operation("privateNetworks-get", "GET", "/private-networks/{id}", get_network),
    Operation("privateNetworks-update", "PUT", "/private-networks/{id}", NETWORKS.rename, _NAME),
    Operation("privateNetworks-delete", "DELETE", "/private-networks/{id}", delete_network),
    Operation("sharedDrives-create", "POST", "/shared-drives", create_drive, _NEW_DRIVE),
    listing("sharedDrives-list", "/shared-drives", DRIVES.list, ("dtCreated", "name")),
    Operation("sharedDrives-get", "GET", "/shared-drives/{id}", DRIVES.get),
    Operation("sharedDrives-update", "PUT", "/shared-drives/{id}", DRIVES.rename, _NAME),
    Operation("sharedDrives-delete", "DELETE", "/shared-drives/{id}", delete_drive),
    listing("publicIps-list", "/public-ips", find_public_ips, ("dtCreated",)),
    Operation("publicIps-release", "DELETE", "/public-ips/{ip}", release_public_ip),
)
