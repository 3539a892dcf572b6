"""The Router resource: a router that guests and VLANs may be placed behind, by its id or hostname."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import pydantic

from providers.softlayer.calls import Api
from providers.softlayer.errors import ProviderError
from providers.softlayer.look_up import LookUp
from providers.softlayer.spec import ObjectId, Spec

POD_MASK = "mask[name,datacenterName,backendRouterId,backendRouterName,frontendRouterId,frontendRouterName]"
SIDES = {"backend": "PRIVATE", "frontend": "PUBLIC"}


class RouterSpec(Spec):
    """Which one."""

    router_id: ObjectId | None = None
    hostname: str | None = None

    @pydantic.model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.router_id is None) == (self.hostname is None):
            raise ValueError("name either routerId or hostname, and not both")
        return self


def find(api: Api, spec: RouterSpec) -> dict[str, Any] | None:
    """Read a router out of the list of pods, each a pair of routers."""
    return pick(api.read_all("Network_Pod", "getAllObjects", mask=POD_MASK), spec)


def pick(pods: Sequence[Mapping[str, Any]], spec: RouterSpec) -> dict[str, Any] | None:
    """Choose the router that is meant; a hostname may stand without its datacenter if there is only one."""
    every = [_router(pod, side) for pod in pods for side in SIDES if pod.get(f"{side}RouterId")]
    if spec.router_id is not None:
        return next((each for each in every if each["routerId"] == spec.router_id), None)
    found = [each for each in every if spec.hostname in (each["hostname"], each["hostname"].split(".")[0])]
    if len(found) > 1:
        names = ", ".join(each["hostname"] for each in found)
        raise ProviderError(
            f"looking up the router {spec.hostname}: several have this name: {names}. Name one of them."
        )
    return found[0] if found else None


def _router(pod: Mapping[str, Any], side: str) -> dict[str, Any]:
    return {
        "routerId": str(pod[f"{side}RouterId"]),
        "hostname": str(pod[f"{side}RouterName"]),
        "space": SIDES[side],
        "pod": pod["name"],
        "datacenter": str(pod["name"]).partition(".")[0],
    }


OUTPUTS = ("routerId", "hostname", "space", "pod", "datacenter")
ROUTER = LookUp(
    "router", RouterSpec, find, OUTPUTS, "Pods and their routers: 'slcli call-api Network_Pod getAllObjects'."
)
