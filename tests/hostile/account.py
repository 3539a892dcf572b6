"""The account in which the machines of a case are rented: an emulated one without machines behind its guests."""

import contextlib
import time
from pathlib import Path
from typing import Any

import SoftLayer

from microcluster.accounts.softlayer import credentials
from microcluster.accounts.softlayer.api import new_client

LEASE_S = 2.0
"""A little longer than the lease in the stack file of a case."""
CALL_TRIES = 3


class Rent:
    """Two guests of one stack, as their owner's other client sees them."""

    def __init__(self, account_file: Path, stack: str, mark: str) -> None:
        self._client = new_client(credentials.load(str(account_file)))
        self._domain = f"{stack}-{mark}.microcluster"
        self._guests: tuple[str, ...] = ()
        self._ordered = time.monotonic()

    def order(self) -> tuple[str, ...]:
        """Order both, and return their ids."""
        self._guests = tuple(self._order(f"gpu-{number}") for number in range(2))
        self._ordered = time.monotonic()
        return self._guests

    def wait_until_over(self) -> None:
        """Return when both are provisioned and the lease of their stack is over."""
        while not all(self._guest(each).get("provisionDate") for each in self._guests):
            time.sleep(0.1)
        time.sleep(max(0.0, self._ordered + LEASE_S - time.monotonic()))

    def billed(self) -> list[str]:
        """Return those that still cost money."""
        return [each for each in self._guests if self._guest(each).get("billingItem")]

    def cancel(self) -> None:
        """Cancel what is left of them, so that the account stays small."""
        for each in self._guests:
            with contextlib.suppress(SoftLayer.SoftLayerAPIError):
                self._client.call("Virtual_Guest", "deleteObject", id=int(each))

    def _guest(self, guest: str) -> dict[str, Any]:
        try:
            return self._client.call(
                "Virtual_Guest", "getObject", id=int(guest), mask="mask[id,provisionDate,billingItem[id]]"
            )
        except SoftLayer.SoftLayerAPIError:  # It is gone.
            return {"provisionDate": "gone"}

    def _order(self, hostname: str) -> str:
        template = {
            "hostname": hostname,
            "domain": self._domain,
            "datacenter": {"name": "lon06"},
            "hourlyBillingFlag": True,
            "localDiskFlag": False,
            "supplementalCreateObjectOptions": {"flavorKeyName": "AC1_16X120X100"},
            "operatingSystemReferenceCode": "UBUNTU_18_64",
            "networkComponents": [{"maxSpeed": 1000}],
        }
        return str(self._client.call("Virtual_Guest", "createObject", template)["id"])
