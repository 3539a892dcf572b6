"""What the account lists under one stack and mark, read once for everyone who waits for any of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from providers.rental import owner_mark
from providers.softlayer.calls import Api

# primaryRouter tells on which side of the private network a guest already stands.
GUEST_MASK = (
    "mask[id,hostname,domain,notes,createDate,provisionDate,hourlyBillingFlag,primaryIpAddress,primaryBackendIpAddress,"
    "datacenter[name],tagReferences[tag[name]],"
    "activeTransaction[id,elapsedSeconds,transactionGroup[name],transactionStatus[name,friendlyName,averageDuration]],"
    "primaryNetworkComponent[id,maxSpeed,securityGroupBindings[securityGroup[id]]],"
    "primaryBackendNetworkComponent[id,maxSpeed,networkVlan[id,primaryRouter[id]],securityGroupBindings[securityGroup[id]]],"
    "blockDevices[device,diskImage[capacity]],blockDeviceTemplateGroup[id,globalIdentifier],"
    "billingItem[id,cancellationDate,hourlyFlag,hourlyRecurringFee,recurringFee,children[hourlyRecurringFee,recurringFee],"
    "orderItem[id,order[id,status],preset[keyName]]]]"
)
ORDER_MASK = "mask[id,status,createDate,items[hostName,domainName]]"
BILL_MASK = "mask[id,domainName,hostName,cancellationDate,orderItem[order[id]]]"

Row = dict[str, Any]


class SharedList:
    """A list by owner; simultaneous askers share one request, and nobody gets an answer older than asked for."""

    def __init__(self, fetch: Callable[[Any], list[Row]]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._read: dict[Hashable, tuple[float, list[Row]]] = {}

    def under(self, owner: Hashable, max_age_s: float = 0.0) -> list[Row]:
        """List what carries exactly this stack and mark, cancelled things included."""
        not_before = time.monotonic() - max_age_s
        with self._lock:
            began, rows = self._read.get(owner, (float("-inf"), []))
            if began < not_before:
                began, rows = time.monotonic(), self._fetch(owner)
                self._read[owner] = (began, rows)
        return rows


def guest_list(api: Api) -> SharedList:
    """The guests whose domain carries stack and mark."""

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted = {"virtualGuests": {"domain": _ending(owner)}}
        found = api.read_all("Account", "getVirtualGuests", mask=GUEST_MASK, filter=rooted)
        return [guest for guest in found if owner_mark.guest_is(guest, owner)]

    return SharedList(fetch)


def order_list(api: Api) -> SharedList:
    """The orders with an item whose domain carries stack and mark."""

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted = {"orders": {"items": {"domainName": _ending(owner)}}}
        found = api.read_all("Account", "getOrders", mask=ORDER_MASK, filter=rooted)
        return [order for order in found if any(_is_under(item, owner) for item in order.get("items") or [])]

    return SharedList(fetch)


def bill_list(api: Api) -> SharedList:
    """The top-level billing items of guests whose domain carries stack and mark, closed ones included."""

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted = {"allTopLevelBillingItems": {"domainName": _ending(owner)}}
        found = api.read_all("Account", "getAllTopLevelBillingItems", mask=BILL_MASK, filter=rooted)
        return [item for item in found if _is_under(item, owner)]

    return SharedList(fetch)


def key_by_id(api: Api) -> SharedList:
    """One ssh key by its id, or none."""

    def fetch(key_id: str) -> list[Row]:
        found = api.find("Security_Ssh_Key", key_id, "mask[id,notes]")
        return [found] if found else []

    return SharedList(fetch)


def _ending(owner: owner_mark.Owner) -> dict[str, str]:
    return {"operation": f"$= {owner}.{owner_mark.ZONE}"}


def _is_under(item: Row, owner: owner_mark.Owner) -> bool:
    return owner_mark.owner_in_domain(item.get("domainName")) == owner
