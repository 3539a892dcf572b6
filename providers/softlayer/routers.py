"""The one backend router of a cluster: guests behind different routers cannot talk to each other."""

from collections.abc import Mapping, Sequence
from typing import Any

from providers.rental.errors import ProviderError
from providers.softlayer.api import Api
from providers.softlayer.guest_view import Guest, live_inputs

CLOSING = "CLOSURE_ANNOUNCED"
VLAN_MASK = "mask[id,networkSpace,primaryRouter[id,datacenter[name]]]"


def choose(api: Api, datacenter: str, wanted: str | None, recorded: str | None, living: Sequence[Guest]) -> str:
    """Choose the router: the wanted one, the recorded one, the one our guests stand behind, or the first that stays open."""
    pods = api.read_all("Network_Pod", "getAllObjects", mask="mask[name,datacenterId,backendRouterId,capabilities]")
    return pick(datacenter, pods, wanted, recorded or _taken(living))


def pick(datacenter: str, pods: Sequence[dict[str, Any]], wanted: str | None, kept: str | None) -> str:
    """Decide among the datacenter's pods; their names begin with it, as in ``lon04.pod01``."""
    here = sorted((pod for pod in pods if str(pod["name"]).startswith(f"{datacenter}.")), key=lambda pod: pod["name"])
    routers = {str(pod["backendRouterId"]): pod for pod in here}
    if not routers:
        raise ProviderError(
            f"choosing a router in {datacenter}: the account shows no pod there. Choose another datacenter."
        )
    if wanted is not None and wanted not in routers:
        known = ", ".join(routers)
        raise ProviderError(
            f"choosing a router in {datacenter}: {wanted} is not there, only {known}. Correct the stack file."
        )
    if wanted is not None or kept in routers:
        return str(wanted or kept)
    staying = [router for router, pod in routers.items() if CLOSING not in (pod.get("capabilities") or [])]
    return (staying or list(routers))[0]


def of_vlan(api: Api, datacenter: str, vlan_id: str) -> str:
    """Return the router of the VLAN that was asked for, once it is known that guests of the datacenter can stand in it."""
    return router_of(vlan_id, api.find("Network_Vlan", vlan_id, VLAN_MASK), datacenter)


def router_of(vlan_id: str, vlan: Mapping[str, Any] | None, datacenter: str) -> str:
    """Read the router of a private VLAN in the datacenter; anything else is refused."""
    checking = f"checking the private VLAN {vlan_id}"
    if vlan is None:
        raise ProviderError(
            f"{checking}: the account has none of this id. Name the id, not the number, of one that is there (an automatic "
            "one goes with its last guest), or leave the VLAN out of the stack file."
        )
    if vlan.get("networkSpace") != "PRIVATE":
        raise ProviderError(f"{checking}: it is a {vlan.get('networkSpace')} one. Name a private VLAN in {datacenter}.")
    router = vlan.get("primaryRouter") or {}
    place = (router.get("datacenter") or {}).get("name")
    if place != datacenter:
        raise ProviderError(
            f"{checking}: it is in {place}, the cluster in {datacenter}. Name a private VLAN in {datacenter}."
        )
    return str(router["id"])


def _taken(living: Sequence[Guest]) -> str | None:
    return next((router for guest in living if (router := live_inputs(guest).get("backendRouterId"))), None)
