"""The machine behind each guest: what it has to be like, with security groups resolved to addresses."""

from emulator.machines.spec import Access, MachineSpec, Rule
from emulator.shared.machine_reconciler import Target
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.records import Component, GroupRule, Guest

ANYWHERE = "0.0.0.0/0"
NOBODY = "255.255.255.255/32"


class GuestMachines:
    """Guests of a SoftLayer account as machines for the reconciler."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def advance(self) -> bool:
        """Do what is due on the account's clock; return whether anything was."""
        return transactions.advance(self._account)

    def next_moment(self) -> float | None:
        """The next moment at which the clock alone changes a guest; None if there is no such moment."""
        return transactions.next_moment(self._account)

    def ids(self) -> list[int]:
        """The guests with a machine, also one to be removed; while an order waits there is none."""
        guests = self._account.store.guests.read_all()
        return [guest.id for guest in guests if guest.begun or guest.cancelled is not None]

    def target(self, guest_id: int) -> Target:
        """The state that a guest's machine has to reach."""
        guest = self._account.store.guests.read(guest_id)
        if guest.cancelled is not None:
            return Target(spec=None)
        access = Access(
            private=_rules(self._account, guest.private),
            public=_rules(self._account, guest.public),
            private_mbps=guest.private.max_speed,
            public_mbps=guest.public.max_speed,
        )
        return Target(spec=_spec(self._account, guest), boots=guest.boots_wanted, access=access)

    def report(self, guest_id: int, target: Target, error: str | None) -> None:
        """Record that a guest's machine has reached its target, or why not."""
        guest = self._account.store.guests[guest_id]
        guest.machine_error = error
        if error:
            return
        if target.spec is None:
            guest.machine_gone = True
        else:
            guest.boots_done = target.boots


def attached_interfaces(account: Account, group_id: int) -> list[tuple[Guest, Component]]:
    """The interfaces with this security group, also those of guests that are being reclaimed."""
    return [
        (guest, component)
        for guest in account.store.guests.read_all()
        for component in guest.components
        if group_id in component.groups
    ]


def _spec(account: Account, guest: Guest) -> MachineSpec:
    flavor = account.catalog.flavor(guest.flavor)
    return MachineSpec(
        guest_id=guest.id,
        hostname=guest.hostname,
        domain=guest.domain,
        router_id=account.store.vlans[guest.private.vlan_id].network,
        private_address=guest.private.address,
        public_address=guest.public.address,
        gpu_model=flavor.gpu_model,
        gpu_count=flavor.gpu_count,
        disks=tuple(disk for disk in guest.disks if disk.device > 1),
        ssh_keys=tuple(guest.ssh_keys),
        user_data=guest.user_data,
        root_password=guest.password,
    )


def _rules(account: Account, component: Component) -> tuple[Rule, ...] | None:
    """The rules on an interface; None when it has no group, and then everything is open."""
    if not component.groups:
        return None
    groups = [account.store.security_groups[group_id] for group_id in sorted(component.groups)]
    rules = [rule for group in groups for rule in group.rules if rule.ethertype == "IPv4"]
    return tuple(_resolved(account, rule, component.port) for rule in rules)


def _resolved(account: Account, rule: GroupRule, port: int) -> Rule:
    remote: tuple[str, ...] = ()
    if rule.remote_group_id is not None:
        members = attached_interfaces(account, rule.remote_group_id)
        addresses = sorted(f"{component.address}/32" for _, component in members if component.port == port)
        # A group without members on this network lets nobody in; an empty tuple would let everybody in.
        remote = tuple(addresses) or (NOBODY,)
    elif rule.remote_ip and rule.remote_ip != ANYWHERE:
        remote = (rule.remote_ip if "/" in rule.remote_ip else f"{rule.remote_ip}/32",)
    return Rule(rule.direction, rule.protocol, rule.port_min, rule.port_max, remote)
