"""The account's guests under one domain, read once for everyone who waits for any of them."""

from __future__ import annotations

import threading
import time
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
    "billingItem[id,cancellationDate,hourlyRecurringFee,children[hourlyRecurringFee],"
    "orderItem[id,order[id,status],preset[keyName]]]]"
)


class GuestList:
    """Guests by owner mark; simultaneous askers share one request, and nobody gets an answer older than asked for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._read: dict[str, tuple[float, list[dict[str, Any]]]] = {}

    def under(self, owner_mark: str, max_age_s: float = 0.0) -> list[dict[str, Any]]:
        """List the guests whose domain carries exactly this mark, cancelled ones included."""
        not_before = time.monotonic() - max_age_s
        with self._lock:
            began, guests = self._read.get(owner_mark, (float("-inf"), []))
            if began < not_before:
                began, guests = time.monotonic(), self._fetch(owner_mark)
                self._read[owner_mark] = (began, guests)
        return guests

    def _fetch(self, owner_mark: str) -> list[dict[str, Any]]:
        ending = {"virtualGuests": {"domain": {"operation": f"$= -{owner_mark}.{mark.ZONE}"}}}
        order = {"virtualGuests": {"id": {"operation": "orderBy", "options": [{"name": "sort", "value": ["ASC"]}]}}}
        rooted = {"virtualGuests": {**ending["virtualGuests"], **order["virtualGuests"]}}
        found = self._api.read_all("Account", "getVirtualGuests", mask=GUEST_MASK, filter=rooted)
        return [guest for guest in found if mark.guest_is(guest, owner_mark)]
