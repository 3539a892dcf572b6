"""Volumes and VLANs that bear an owner mark: no stack declares any, so they are reported and a person cancels them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from providers.rental import owner_mark as marks
from providers.softlayer.api import Api

VOLUME, VLAN = "volume", "vlan"
BILLING_MASK = (
    "billingItem[id,description,categoryCode,hostName,domainName,notes,hourlyFlag,createDate,cycleStartDate,"
    "cancellationDate,hourlyRecurringFee,recurringFee,currentHourlyCharge,"
    "children[createDate,cycleStartDate,hourlyRecurringFee,recurringFee,currentHourlyCharge]]"
)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class OtherKind:
    """One such kind: how the account lists it, and how a person cancels it."""

    kind: str
    method: str
    """Of SoftLayer_Account."""
    mask: str
    marked_by: Callable[[Row], marks.Owner | None]
    """Reads the mark that the thing itself bears."""
    name: Callable[[Row], str]
    cancel: Callable[[Row], str]
    """Returns the official client's command."""

    def owner(self, row: Row) -> marks.Owner | None:
        """Read whose it is, from the thing or its billing item; what is not billed is nobody's business."""
        item = row.get("billingItem")
        return (self.marked_by(row) or _owner_of_item(item)) if item else None


def billed(api: Api, owner: marks.Owner) -> list[dict[str, Any]]:
    """List the volumes and VLANs with exactly this stack and mark that are billed."""
    return [
        row
        for kind in KINDS
        for row in api.read_all("Account", kind.method, mask=kind.mask)
        if (found := kind.owner(row)) and owner.has(found)
    ]


def _owner_of_item(item: Row) -> marks.Owner | None:
    return marks.owner_in_domain(item.get("domainName")) or marks.owner_in_notes(item.get("notes"))


def _owner_of_vlan(vlan: Row) -> marks.Owner | None:
    """Read the tags, or the mark alone from the name: a VLAN has no notes, and its name has room for no stack."""
    tags = [str((each.get("tag") or {}).get("name")) for each in vlan.get("tagReferences") or []]
    named = re.match(r"mc-([0-9a-f]{8})(?![0-9A-Za-z])", str(vlan.get("name") or ""))
    return marks.owner_in_tags(tags) or (marks.Owner(marks.ANY_STACK, named[1]) if named else None)


def _cancel_volume(volume: Row) -> str:
    kind = "file" if volume.get("nasType") == "NAS" else "block"
    return f"slcli {kind} volume-cancel --immediate {volume['id']}"


KINDS = (
    OtherKind(
        VOLUME,
        "getNetworkStorage",
        f"mask[id,username,notes,nasType,createDate,{BILLING_MASK}]",
        lambda row: marks.owner_in_notes(row.get("notes")),
        lambda row: str(row.get("notes") or row.get("username") or ""),
        _cancel_volume,
    ),
    OtherKind(
        VLAN,
        "getNetworkVlans",
        f"mask[id,name,tagReferences[tag[name]],{BILLING_MASK}]",
        _owner_of_vlan,
        lambda row: str(row.get("name") or ""),
        lambda row: f"slcli vlan cancel {row['id']}",
    ),
)
