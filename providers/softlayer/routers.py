"""The one backend router of a cluster: guests behind different routers cannot talk to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from providers.softlayer.calls import Api
from providers.softlayer.errors import ProviderError
from providers.softlayer.guests import Guest, live_inputs

CLOSING = "CLOSURE_ANNOUNCED"


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


def _taken(living: Sequence[Guest]) -> str | None:
    return next((router for guest in living if (router := live_inputs(guest).get("backendRouterId"))), None)
