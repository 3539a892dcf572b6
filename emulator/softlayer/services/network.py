"""VLANs, subnets, pods and routers: reading and naming them; billing items cancel what was ordered."""

from emulator.softlayer import vlans
from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.faults import not_found
from emulator.softlayer.objects import places
from emulator.softlayer.services.finding import changes_of, find, identifier
from emulator.softlayer.views import Listing, View


def get_vlan(account: Account, call: Call) -> View:
    """A VLAN."""
    return places.vlan(account, find(account.store.vlans, call))


def edit_vlan(account: Account, call: Call) -> bool:
    """Give a VLAN a name."""
    changes = changes_of(call, "name")
    find(account.store.vlans, call).name = vlans.checked_name(str(changes.get("name") or ""))
    return True


def set_vlan_tags(account: Account, call: Call) -> bool:
    """Replace the tags of a VLAN."""
    find(account.store.vlans, call).tags = [tag.strip() for tag in str(call.argument(0)).split(",") if tag.strip()]
    return True


def cancel_failure_reasons(account: Account, call: Call) -> list[str]:
    """Why a VLAN cannot be cancelled: the guests on it."""
    return vlans.failure_reasons(account, find(account.store.vlans, call))


def get_subnet(account: Account, call: Call) -> View:
    """A subnet."""
    key = identifier(call)
    for vlan in account.store.vlans.values():
        if vlan.subnet_id == key:
            return places.subnet(account, vlan)
    raise not_found(call.identifier)


def get_pods(account: Account, call: Call) -> Listing:
    """Every pod of every datacenter."""
    return Listing([places.pod(account, router) for router in account.catalog.routers if router.private])


def get_router(account: Account, call: Call) -> View:
    """A router."""
    router = account.catalog.router(identifier(call))
    if router is None:
        raise not_found(call.identifier)
    return places.router(account, router)


SERVICES = {
    "SoftLayer_Network_Vlan": {
        "getObject": get_vlan,
        "editObject": edit_vlan,
        "setTags": set_vlan_tags,
        "getCancelFailureReasons": cancel_failure_reasons,
    },
    "SoftLayer_Network_Subnet": {"getObject": get_subnet},
    "SoftLayer_Network_Pod": {"getAllObjects": get_pods},
    "SoftLayer_Hardware_Router": {"getObject": get_router},
}
