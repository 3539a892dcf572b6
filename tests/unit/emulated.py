"""An emulated account without a wire, whose clock goes by calls."""

import json
from pathlib import Path
from typing import Any

from emulator.shared.api import HISTORY_FILE, Reply
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.api import SoftLayer
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import Fault
from emulator.softlayer.settings import Settings

SETTINGS = {
    "machines": "none",
    "history": True,
    "clock_step_s": 1.0,
    "clock_start": "2026-01-01T00:00:00+00:00",
    "provisioning_s": 10.0,
    "reclaim_s": 10.0,
    "instance_limit": 500,
    "calls_per_second": 0,
    "public_subnet": "198.51.100.0/24",
}


class Emulated:
    """One account and what a client does with it."""

    def __init__(self, state: Path, **settings: Any) -> None:
        self.state = state
        self.account = Account(Settings(state, **(SETTINGS | settings)))
        self.account.store.flush()
        self.api = SoftLayer(self.account)
        self.owner = Credentials("local", self.account.settings.api_key)

    def call(self, service: str, method: str, *arguments: Any, identifier: Any = None, mask: str = "") -> Any:
        result = self.reply(service, method, *arguments, identifier=identifier, mask=mask).result
        if isinstance(result, Fault):
            raise result
        return result.value

    def reply(self, service: str, method: str, *arguments: Any, identifier: Any = None, mask: str = "") -> Reply:
        call = Call(f"SoftLayer_{service}", method, arguments, identifier, mask or None, credentials=self.owner)
        return self.api.reply(call)

    def script(self, method: str, kind: str, **more: Any) -> None:
        """Have the next call of a method meet a fault."""
        injector = self.account.fault_injector
        injector.scripted.append(injector.model.read_scripted({"method": method, "kind": kind, **more}))

    def order(self, hostname: str = "gpu-0", **changes: Any) -> int:
        return self.call("Virtual_Guest", "createObject", template(hostname) | changes)["id"]

    def ready(self, hostname: str = "gpu-0") -> int:
        guest_id = self.order(hostname)
        while not self.call("Virtual_Guest", "getObject", identifier=guest_id).get("provisionDate"):
            pass
        return guest_id

    def item(self, guest_id: int) -> int:
        """Return the id of a guest's billing item."""
        return self.account.store.guests.read(guest_id).billing_item_id

    def later(self, seconds: float) -> None:
        """Let time go by, and what is due happen, and then what follows from that."""
        self.account.clock.step(seconds)
        while transactions.advance(self.account):
            self.account.clock.step(20)

    def history(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.state / HISTORY_FILE).read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["kind"] == kind]


def template(hostname: str = "gpu-0") -> dict[str, Any]:
    return {
        "hostname": hostname,
        "domain": "test-1f3a9c42.microcluster",
        "datacenter": {"name": "lon04"},
        "supplementalCreateObjectOptions": {"flavorKeyName": "AC1_16X120X100"},
        "operatingSystemReferenceCode": "UBUNTU_18_64",
        "hourlyBillingFlag": True,
        "networkComponents": [{"maxSpeed": 1000}],
        "blockDevices": [{"device": "2", "diskImage": {"capacity": 2000}}],
    }
