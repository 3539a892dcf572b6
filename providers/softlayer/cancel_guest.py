"""Cancels a guest at once, after taking it out of its security groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError

REASON = "No longer needed"
NOTE = "cancelled by microcluster"


def cancel(account: Account, guest: Mapping[str, Any]) -> None:
    """Cancel at once; a monthly guest would otherwise run on to its anniversary."""
    _detach_groups(account, guest)
    if guest.get("hourlyBillingFlag") is False and guest.get("billingItem"):
        item = int(guest["billingItem"]["id"])
        account.api.once("Billing_Item", "cancelItem", True, True, REASON, NOTE, id=item)
    else:
        account.api.once("Virtual_Guest", "deleteObject", id=int(guest["id"]))


def _detach_groups(account: Account, guest: Mapping[str, Any]) -> None:
    """Take a guest out of its security groups, so that they can be deleted before the reclaim is over.

    A refusal is left alone: nothing may stand between a guest and its cancellation, and the groups' own delete tries again.
    """
    for side in ("primaryNetworkComponent", "primaryBackendNetworkComponent"):
        component = guest.get(side) or {}
        for binding in component.get("securityGroupBindings") or []:
            group_id = (binding.get("securityGroup") or {}).get("id")
            if group_id and component.get("id"):
                _detach(account, int(group_id), int(component["id"]))


def _detach(account: Account, group_id: int, component_id: int) -> None:
    try:
        account.api.once("Network_SecurityGroup", "detachNetworkComponents", [component_id], id=group_id)
    except ApiError:
        return
