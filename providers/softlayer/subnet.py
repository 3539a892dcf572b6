"""The Subnet resource: a subnet of the account, read by its id."""

from __future__ import annotations

from typing import Any

from providers.softlayer.calls import Api
from providers.softlayer.look_up import LookUp
from providers.softlayer.spec import ObjectId, Spec

MASK = (
    "mask[id,networkIdentifier,cidr,netmask,gateway,subnetType,usableIpAddressCount,addressSpace,datacenter[name],"
    "networkVlan[id,vlanNumber]]"
)


class SubnetSpec(Spec):
    """Which one."""

    subnet_id: ObjectId


def find(api: Api, spec: SubnetSpec) -> dict[str, Any] | None:
    """Read a subnet; None when the account has none of this id."""
    found = api.find("Network_Subnet", spec.subnet_id, MASK)
    if found is None:
        return None
    vlan = found.get("networkVlan") or {}
    return {
        "subnetId": str(found["id"]),
        "network": f"{found['networkIdentifier']}/{found['cidr']}",
        "netmask": found.get("netmask"),
        "gateway": found.get("gateway") or None,
        "kind": found.get("subnetType"),
        "space": found.get("addressSpace"),
        "usableAddresses": int(found.get("usableIpAddressCount") or 0),
        "datacenter": (found.get("datacenter") or {}).get("name"),
        "vlanId": str(vlan["id"]) if vlan.get("id") else None,
        "vlanNumber": vlan.get("vlanNumber"),
    }


OUTPUTS = (
    *("subnetId", "network", "netmask", "gateway", "kind", "space", "usableAddresses", "datacenter"),
    *("vlanId", "vlanNumber"),
)
SUBNET = LookUp("subnet", SubnetSpec, find, OUTPUTS, "'slcli subnet list' shows the ids of those that are there.")
