"""Networks: routers, VLANs and addresses of new guests, and the end of a VLAN."""

from emulator.shared.account import free_address
from emulator.softlayer import faults
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Router
from emulator.softlayer.records import BillingItem, Vlan


def routers_for(account: Account, datacenter: Datacenter, named: Router | None) -> tuple[Router, Router]:
    """The private and the public router of a new guest: those of the named one's pod, or of the next pod in turn."""
    if named and named.datacenter != datacenter:
        raise faults.public(f"Router {named.id} ({named.hostname}) is not in datacenter {datacenter.name}.")
    pod = named.pod if named else _next_pod(account, datacenter)
    private, public = (each for each in account.catalog.routers if each.pod == pod)
    return private, public


def vlan_behind(account: Account, router: Router) -> Vlan:
    """A VLAN behind a router for a guest that names none: an existing one, or else a new automatic one."""
    for vlan in account.store.vlans.values():
        if vlan.router_id == router.id:
            return vlan
    return new_vlan(account, router)


def new_vlan(account: Account, router: Router) -> Vlan:
    """One more VLAN behind a router, with a subnet of its own."""
    network, cidr = _free_network(account, router) if router.private else (0, account.settings.public_subnet)
    vlan = Vlan(account.next_id(), router.id, router.private, cidr, network)
    account.store.vlans[vlan.id] = vlan
    return vlan


def address_on(account: Account, vlan: Vlan) -> str:
    """An address of the VLAN's subnet that no guest has, not even one that is being reclaimed."""
    taken = {component.address for guest in account.store.guests.read_all() for component in guest.components}
    address = free_address(vlan.cidr, taken)
    if address is None:
        text = f"There is no free address in subnet {vlan.cidr} of VLAN {vlan.id}."
        raise faults.insufficient_capacity(text, account.settings.capacity_code)
    return address


def release(account: Account) -> None:
    """Remove automatic VLANs without guests; ordered ones stay."""
    used = {component.vlan_id for guest in account.store.guests.read_all() for component in guest.components}
    left = [vlan.id for vlan in account.store.vlans.read_all() if vlan.id not in used and vlan.billing_item_id is None]
    for vlan_id in left:
        del account.store.vlans[vlan_id]


def cannot_end(account: Account, item: BillingItem) -> str | None:
    """The reason why an ordered VLAN cannot be cancelled now, as a sentence: a guest on it, even one in reclaim."""
    for guest in account.store.guests.read_all():
        if any(each.vlan_id == item.resource_id for each in guest.components):
            return f"Virtual guest {guest.id} ({guest.name}) is on VLAN {item.resource_id}."
    return None


def _next_pod(account: Account, datacenter: Datacenter) -> str:
    """Pods take turns, so that guests that name no router are separated, as they may be in reality."""
    fact = f"pod_turn_{datacenter.name}"
    turn = int(account.store.facts.get(fact, 0))
    account.store.facts[fact] = str(turn + 1)
    pods = [each.pod for each in account.catalog.routers if each.private and each.datacenter == datacenter]
    return pods[turn % len(pods)]


def _free_network(account: Account, router: Router) -> tuple[int, str]:
    taken = {vlan.network for vlan in account.store.vlans.read_all()}
    for number, cidr in enumerate(account.settings.private_subnets, 1):
        if number not in taken:
            return number, cidr
    raise faults.insufficient_capacity(
        f"Insufficient capacity behind router {router.hostname}: every private network of this emulator is in use "
        "(setting private_subnets).",
        account.settings.capacity_code,
    )
