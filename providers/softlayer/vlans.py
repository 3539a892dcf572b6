"""A VLAN as the account shows it: whose it is, ordered or automatic, and where it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from providers.softlayer import mark as marks
from providers.softlayer import money
from providers.softlayer.calls import Api
from providers.softlayer.goods import BILLING_MASK, Goods, order_id

Vlan = Mapping[str, Any]

NAME_LENGTH = 20
"""The account takes no longer names of VLANs."""
MARK_LENGTH = len("mc-1f3a9c42-")
VLAN_MASK = (
    "mask[id,vlanNumber,name,networkSpace,primaryRouter[id,hostname,datacenter[name]],"
    "subnets[id,networkIdentifier,cidr,gateway,subnetType],tagReferences[tag[name]],"
    f"virtualGuests[id,hostname,domain,billingItem[id]],{BILLING_MASK}]"
)
OUTPUTS = ("vlanId", "vlanNumber", "routerId", "routerHostname", "subnets", "billing", "ends", "orderId", "accountId")


def marked_name(owner_mark: str, name: str) -> str:
    """Write the mark into the name: it rides in the order, and a VLAN has no notes."""
    return f"mc-{owner_mark}-{name}"


def listed(api: Api) -> list[dict[str, Any]]:
    """List the account's VLANs."""
    return api.read_all("Account", "getNetworkVlans", mask=VLAN_MASK)


def bears(vlan: Vlan, owner_mark: str) -> bool:
    """Tell whether the name begins with exactly this mark, or a tag is exactly that of the mark."""
    return _is_named(vlan, owner_mark) or f"mc-mark-{owner_mark}" in tags(vlan)


def owner(vlan: Vlan) -> marks.Owner | None:
    """Read whose it is from its tags, or, as these come by a second call, the mark alone from its name."""
    named = re.match(r"mc-([0-9a-f]{8})-", str(vlan.get("name") or ""))
    return marks.owner_in_tags(tags(vlan)) or (marks.Owner("unknown", named[1]) if named else None)


def short_name(vlan: Vlan, owner_mark: str) -> str:
    """Return the name without the mark; one that somebody else gave it is returned whole."""
    name = str(vlan.get("name") or "")
    return name[MARK_LENGTH:] if _is_named(vlan, owner_mark) else name


def is_automatic(vlan: Vlan) -> bool:
    """Tell whether it came with a guest: nobody ordered it, it costs nothing, and it goes with its last guest."""
    return not vlan.get("billingItem")


def router_id(vlan: Vlan) -> str | None:
    """Return the router that carries it."""
    number = (vlan.get("primaryRouter") or {}).get("id")
    return str(number) if number else None


def datacenter(vlan: Vlan) -> str | None:
    """Return the datacenter of its router."""
    return ((vlan.get("primaryRouter") or {}).get("datacenter") or {}).get("name")


def inhabitants(vlan: Vlan) -> list[str]:
    """Name the guests on it that are not cancelled."""
    living = [guest for guest in vlan.get("virtualGuests") or [] if guest.get("billingItem")]
    return [f"{guest['id']} ({guest['hostname']}.{guest['domain']})" for guest in living]


def tags(vlan: Vlan) -> set[str]:
    """List its tags."""
    return {str((reference.get("tag") or {}).get("name")) for reference in vlan.get("tagReferences") or []}


def _is_named(vlan: Vlan, owner_mark: str) -> bool:
    return str(vlan.get("name") or "").startswith(marked_name(owner_mark, ""))


def outputs(vlan: Vlan, account_id: str, order: str | None) -> dict[str, Any]:
    """Write down what the rest of the program wants to know."""
    subnets = [f"{each['networkIdentifier']}/{each['cidr']}" for each in vlan.get("subnets") or []]
    return {
        "vlanId": str(vlan["id"]),
        "vlanNumber": int(vlan["vlanNumber"]),
        "routerId": router_id(vlan),
        "routerHostname": (vlan.get("primaryRouter") or {}).get("hostname"),
        "subnets": subnets,
        "billing": money.billing(vlan.get("billingItem")),
        "ends": (vlan.get("billingItem") or {}).get("cancellationDate") or None,
        "orderId": order_id(vlan) or order,
        "accountId": account_id,
    }


VLANS = Goods(kind="Vlan", word="VLAN", service="Network_Vlan", mask=VLAN_MASK, listed=listed, bears=bears)
