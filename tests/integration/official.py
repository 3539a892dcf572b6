"""The vendor's own client, unmodified: its managers over both protocols, and its command line in this process over the same wire."""

import json
from pathlib import Path
from typing import Any

import SoftLayer
from click.testing import CliRunner
from SoftLayer.CLI import core

from tests.integration.until import until

ANSWER_S = 20
DOMAIN = "cli-1f3a9c42.microcluster"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "D" * 43
GUEST = {
    "hostname": "gpu-0",
    "domain": DOMAIN,
    "datacenter": "lon04",
    "flavor": "AC1_16X120X100",
    "os_code": "UBUNTU_18_64",
    "nic_speed": 1000,
    "disks": ["100", "2000"],
    "local_disk": False,
}


def client_of(emulator: Any, protocol: str = "xmlrpc") -> SoftLayer.API.BaseClient:
    """The client, as a person with the account's key makes it."""
    endpoint = {"xmlrpc": emulator.endpoint, "rest": emulator.rest_endpoint}[protocol]
    return SoftLayer.create_client_from_env(username="local", api_key="local", endpoint_url=endpoint, timeout=ANSWER_S)


class Slcli:
    """``slcli`` with the account's file; a process of its own for each command would take a second."""

    def __init__(self, config_file: Path) -> None:
        self._options = ["-y", "-C", str(config_file), "--format", "json"]

    def text(self, *words: object) -> str:
        """What a command prints."""
        done = self._run(words)
        assert done.exit_code == 0, f"slcli {words}: {done.output[-2000:]} {done.exception!r}"
        return done.output

    def json(self, *words: object) -> Any:
        """The table that a command prints, as data."""
        return json.loads(self.text(*words))

    def refused(self, *words: object) -> str:
        """Why a command fails."""
        done = self._run(words)
        assert done.exit_code, f"slcli {words} was not refused: {done.output[-2000:]}"
        return f"{done.output} {getattr(done.exception, 'message', done.exception)}"

    def _run(self, words: tuple[object, ...]) -> Any:
        return CliRunner().invoke(core.cli, [*self._options, *map(str, words)])


def order(client: SoftLayer.API.BaseClient, **changes: Any) -> int:
    """Order a guest through the manager and wait until it is built."""
    manager = SoftLayer.VSManager(client)
    guest_id = manager.create_instance(**GUEST | changes)["id"]
    until(lambda: idle(client, guest_id))
    return guest_id


def idle(client: SoftLayer.API.BaseClient, guest_id: int) -> bool:
    """Whether a guest is built and nothing is going on."""
    mask = "mask[provisionDate,activeTransaction[id]]"
    guest = client.call("Virtual_Guest", "getObject", id=guest_id, mask=mask)
    return bool(guest.get("provisionDate")) and not guest.get("activeTransaction")


def cancel_all(client: SoftLayer.API.BaseClient) -> None:
    """Cancel every guest, once nothing is going on there."""
    for guest in client.call("Account", "getVirtualGuests", mask="mask[id,billingItem[id,cancellationDate]]"):
        if guest.get("billingItem") and not guest["billingItem"].get("cancellationDate"):
            until(lambda guest_id=guest["id"]: idle(client, guest_id))
            client.call("Virtual_Guest", "deleteObject", id=guest["id"])
