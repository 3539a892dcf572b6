"""A small cluster as the program would declare it, and the account as a person with the official client sees it."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import SoftLayer

from microcluster.accounts.shared.receipt import receipt
from microcluster.accounts.softlayer import account as accounts
from microcluster.accounts.softlayer import credentials
from microcluster.accounts.softlayer.api import LISTS_LAG_S, LONGEST_ORDER_S, Api, new_client
from microcluster.core.home import Owner
from tests.chaos.provider import STACK
from tests.chaos.softlayer import DOMAIN, MARK, PUBLIC_KEY, RULES, SIZE, TAGS
from tests.integration.provider_driver import Driver, Resource

CLEAN_TIMEOUT_S = 30
SETTLED_S = LISTS_LAG_S + LONGEST_ORDER_S
"""After so long an order that was sent is in the account's lists."""
OTHERS = ("storage_as_a_service", "network_vlan")
LEDGER = {"mark": MARK, "stack": STACK, "nodes": 2, **SIZE}
OWNER = Owner(STACK, MARK)
KEY = {"mark": MARK, "label": f"{STACK}-{MARK}", "publicKey": PUBLIC_KEY}


def group(name: str) -> dict[str, Any]:
    """Declare a security group."""
    return {"mark": MARK, "name": f"{STACK}-{MARK}-{name}", "description": name, "rules": RULES}


def guest(hostname: str, **changes: Any) -> dict[str, Any]:
    """Declare a guest."""
    ids = {"sshKeyIds": [], "publicSecurityGroupIds": [], "privateSecurityGroupIds": []}
    return {"mark": MARK, "hostname": hostname, "domain": DOMAIN, "tags": TAGS, **SIZE, **ids, **changes}


class Cluster:
    """A stack's resources, made and removed in the order that their dependencies give."""

    def __init__(self, driver: Driver, hostnames: tuple[str, ...] = ("gpu-0", "gpu-1")) -> None:
        self.driver = driver
        self.ledger = driver.create("Ledger", "ledger", {**LEDGER, "nodes": len(hostnames)})
        self.key = driver.create("SshKey", "key", KEY)
        self.group = driver.create("SecurityGroup", "group", group("members"))
        self.guests: dict[str, Resource] = {}
        with ThreadPoolExecutor(len(hostnames)) as pool:
            made = pool.map(lambda name: driver.create("VirtualGuest", name, self.guest(name)), hostnames)
            self.guests = dict(zip(hostnames, made, strict=True))

    def guest(self, hostname: str) -> dict[str, Any]:
        """Declare one of the cluster's guests."""
        return guest(
            hostname,
            backendRouterId=self.ledger.outputs["backendRouterId"],
            sshKeyIds=[self.key.id],
            publicSecurityGroupIds=[self.group.id],
            privateSecurityGroupIds=[self.group.id],
        )

    def destroy(self) -> None:
        """Remove everything, guests first, the ledger last."""
        with ThreadPoolExecutor(max(len(self.guests), 1)) as pool:
            list(pool.map(self.driver.delete, self.guests.values()))
        self.driver.delete(self.group)
        self.driver.delete(self.key)
        self.driver.delete(self.ledger)


class Onlooker:
    """The account through the official client, beside the provider."""

    def __init__(self, config_file: Path) -> None:
        key = credentials.load(str(config_file))
        self.client = new_client(key)
        self.account = accounts.SoftLayer(Api(key, threading.Event()))

    def guests(self) -> list[dict[str, Any]]:
        """List all guests of the account."""
        return self.client.call(
            "Account",
            "getVirtualGuests",
            mask="mask[id,hostname,domain,billingItem[id],notes,tagReferences[tag[name]]]",
        )

    def public_interface(self, guest_id: str) -> int:
        """Look up the id of a guest's public interface."""
        guest = self.client.call("Virtual_Guest", "getObject", id=int(guest_id), mask="primaryNetworkComponent[id]")
        return guest["primaryNetworkComponent"]["id"]

    def billed(self) -> list[dict[str, Any]]:
        """List the guests that cost money."""
        return [each for each in self.guests() if each.get("billingItem")]

    def open_count(self, mark: str = MARK, stack: str = STACK) -> int:
        """Count the open billing items of a mark."""
        return receipt(self.account.charges(Owner(stack, mark))).open_count

    def clean(self) -> None:
        """Cancel and remove everything, so that the next test finds an empty account."""
        ends = time.monotonic() + CLEAN_TIMEOUT_S
        while self.guests():
            assert time.monotonic() < ends, "the account does not get empty"
            for each in self.billed():
                with contextlib.suppress(SoftLayer.SoftLayerAPIError):
                    self.client.call("Virtual_Guest", "deleteObject", id=each["id"])
            threading.Event().wait(0.05)
        self._cancel_others(ends)
        for key in self.client.call("Account", "getSshKeys"):
            self.client.call("Security_Ssh_Key", "deleteObject", id=key["id"])
        for each in self.client.call("Network_SecurityGroup", "getAllObjects"):
            if each["name"].startswith(f"{STACK}-"):
                self.client.call("Network_SecurityGroup", "deleteObject", id=each["id"])

    def _cancel_others(self, ends: float) -> None:
        """Cancel volumes and VLANs, as soon as the account lets them go."""
        while billed := [each for each in self._items() if each["categoryCode"] in OTHERS]:
            assert time.monotonic() < ends, "the account does not get empty"
            for each in billed:
                with contextlib.suppress(SoftLayer.SoftLayerAPIError):
                    self.client.call("Billing_Item", "cancelItem", True, True, "", "", id=each["id"])
            threading.Event().wait(0.05)

    def _items(self) -> list[dict[str, Any]]:
        items = self.client.call("Account", "getAllTopLevelBillingItems", mask="id,categoryCode,cancellationDate")
        return [each for each in items if not each["cancellationDate"]]

    def order(self, hostname: str, domain: str = DOMAIN, user_data: str = "", **changes: Any) -> str:
        """Order a guest as somebody else would."""
        template = {
            "hostname": hostname,
            "domain": domain,
            "datacenter": {"name": "lon06"},
            "hourlyBillingFlag": True,
            "localDiskFlag": False,
            "supplementalCreateObjectOptions": {"flavorKeyName": "AC1_16X120X100"},
            "operatingSystemReferenceCode": "UBUNTU_18_64",
            "blockDevices": [{"device": "2", "diskImage": {"capacity": 2000}}],
            "networkComponents": [{"maxSpeed": 1000}],
            "userData": [{"value": user_data}],
            **changes,
        }
        return str(self.client.call("Virtual_Guest", "createObject", template)["id"])
