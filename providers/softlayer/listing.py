"""What the account lists under one owner mark, read once for everyone who waits for any of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from providers.softlayer import mark
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
BILL_MASK = "mask[id,domainName,hostName,cancellationDate,resourceTableId]"

Row = dict[str, Any]


class SharedList:
    """A list by owner mark; simultaneous askers share one request, and nobody gets an answer older than asked for."""

    def __init__(self, fetch: Callable[[str], list[Row]]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._read: dict[str, tuple[float, list[Row]]] = {}

    def under(self, owner_mark: str, max_age_s: float = 0.0) -> list[Row]:
        """List what carries exactly this mark, cancelled things included."""
        not_before = time.monotonic() - max_age_s
        with self._lock:
            began, rows = self._read.get(owner_mark, (float("-inf"), []))
            if began < not_before:
                began, rows = time.monotonic(), self._fetch(owner_mark)
                self._read[owner_mark] = (began, rows)
        return rows


def guest_list(api: Api) -> SharedList:
    """The guests whose domain carries the mark."""

    def fetch(owner_mark: str) -> list[Row]:
        rooted = {"virtualGuests": {"domain": _ending(owner_mark)}}
        found = api.read_all("Account", "getVirtualGuests", mask=GUEST_MASK, filter=rooted)
        return [guest for guest in found if mark.guest_is(guest, owner_mark)]

    return SharedList(fetch)


def order_list(api: Api) -> SharedList:
    """The orders with an item whose domain carries the mark."""

    def fetch(owner_mark: str) -> list[Row]:
        rooted = {"orders": {"items": {"domainName": _ending(owner_mark)}}}
        found = api.read_all("Account", "getOrders", mask=ORDER_MASK, filter=rooted)
        return [order for order in found if any(_is_under(item, owner_mark) for item in order.get("items") or [])]

    return SharedList(fetch)


def bill_list(api: Api) -> SharedList:
    """The top-level billing items of guests whose domain carries the mark, closed ones included."""

    def fetch(owner_mark: str) -> list[Row]:
        rooted = {"allTopLevelBillingItems": {"domainName": _ending(owner_mark)}}
        found = api.read_all("Account", "getAllTopLevelBillingItems", mask=BILL_MASK, filter=rooted)
        return [item for item in found if _is_under(item, owner_mark)]

    return SharedList(fetch)


def _ending(owner_mark: str) -> dict[str, str]:
    return {"operation": f"$= -{owner_mark}.{mark.ZONE}"}


def _is_under(item: Row, owner_mark: str) -> bool:
    return mark.domain_is(item.get("domainName"), owner_mark)
