"""An emulated Paperspace account of one run, with things of other people in it, and a process that can be killed at a call."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.api import HISTORY_FILE
from emulator.fault_injection import FaultInjector
from emulator.machine_reconciler import MachineReconciler
from emulator.machines.spec import NoMachines
from emulator.paperspace.api import Paperspace as EmulatedApi
from emulator.paperspace.api import read_call
from emulator.paperspace.settings import Settings
from emulator.paperspace.vendor import PAPERSPACE as EMULATED
from emulator.server import application
from emulator.tls import AUTHORITY_FILE, write_identity
from providers.paperspace.account import Account
from providers.paperspace.api import Api
from providers.paperspace.backend import Paperspace
from providers.paperspace.credentials import load
from providers.rental.operation import Session
from tools.chaos.account import CLOCK_RATE, Door, no_faults
from tools.chaos.market import Killed

OTHERS = ("{stack}-00000000.microcluster", "other-11111111.microcluster", "example.com")
PLACE = {"machineType": "P4000x2", "templateId": "twnlo3zj", "region": "ny2", "diskSize": 50, "startOnCreate": True}


@dataclass
class Fate:
    """At which call a process dies, before or after the account has carried it out."""

    number: int = 0
    is_accepted: bool = False
    calls: list[str] = field(default_factory=list)
    is_dead: bool = False
    lock: Any = field(default_factory=threading.Lock)

    def around(self, name: str, send: Callable[[], Any]) -> Any:
        """Send a call unless the process is dead."""
        with self.lock:
            self.calls.append(name)
            is_struck = len(self.calls) == self.number
            was_dead, self.is_dead = self.is_dead, self.is_dead or is_struck
        if was_dead or (is_struck and not self.is_accepted):
            raise Killed
        answer = send()
        if self.is_dead:
            raise Killed
        return answer


class MortalApi(Api):
    """The provider's own calls, until the process is killed."""

    def __init__(self, *arguments: Any, fate: Fate) -> None:
        super().__init__(*arguments)
        self._fate = fate

    def once(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Send a call."""
        return self._fate.around(f"{method} {path}", lambda: super(MortalApi, self).once(method, path, body, **query))


@dataclass(frozen=True)
class Team:
    """The account."""

    account: Any
    folder: Path
    key_file: Path

    def session(self, fate: Fate) -> Session:
        """Begin a process of the provider."""
        stop = threading.Event()
        api = MortalApi(load(str(self.key_file)), stop, 1 / CLOCK_RATE, fate=fate)
        return Session(lambda: Paperspace(Account(api)), 1 / CLOCK_RATE, stop)

    def stop_faults(self) -> None:
        """Let nothing go wrong any more; lists that lag behind go on lagging."""
        with self.account.lock:
            self.account.fault_injector = no_faults(self.account)

    def history(self, mark: str) -> list[dict[str, Any]]:
        """Read what has happened in it until now, in the words of the checker."""
        with self.account.lock:
            lines = [json.loads(line) for line in (self.folder / HISTORY_FILE).read_text().splitlines()]
        return [said for line in lines if (said := _in_checkers_words(line, mark))]


@contextmanager
def opened(folder: Path, stack: str, **settings: Any) -> Iterator[Team]:
    """Open an account in which only somebody else's things are, and close it at the end."""
    folder.mkdir(parents=True)
    faults = settings.pop("faults", {})
    identity = write_identity(folder) if settings.get("tls") else None
    chosen = Settings(folder, machines="none", clock_rate=CLOCK_RATE, provisioning_s=5.0, history=True, **settings)
    account = EMULATED.account(chosen)
    account.store.flush()
    emulated = EmulatedApi(account)
    reconciler = MachineReconciler(account, EMULATED.machine_source(account), NoMachines())
    reconciler.start()
    _settle(emulated, stack)
    account.fault_injector = FaultInjector(chosen.seed, chosen.FAULT_MODEL, chosen.FAULT_MODEL.read_rates(faults))
    door = Door(application(account, emulated.routes(), EMULATED.holdings, 0), identity)
    try:
        yield Team(account, folder, _key_file(folder, door.port, tls=identity is not None))
    finally:
        door.close()
        reconciler.stop()
        with account.lock:
            account.store.close()
            emulated.history.close()


def _key_file(folder: Path, port: int, *, tls: bool) -> Path:
    path = folder / "key"
    scheme, verify = ("https", f"verify = {folder / AUTHORITY_FILE}\n") if tls else ("http", "")
    path.touch(mode=0o600)
    path.write_text(f"[paperspace]\napi_key = local\nendpoint_url = {scheme}://127.0.0.1:{port}/v1\n{verify}")
    return path


def _settle(emulated: EmulatedApi, stack: str) -> None:
    """Order things with names like ours, as their owners would."""
    for domain in [each.format(stack=stack) for each in OTHERS]:
        net = _asked(emulated, "/private-networks", name=f"net.{domain}", region="ny2")["id"]
        _asked(emulated, "/machines", name=f"gpu-0.{domain}", networkId=net, publicIpType="dynamic", **PLACE)
        _asked(emulated, "/shared-drives", name=f"data.{domain}", region="ny2", size=250, networkId=net)
        _asked(emulated, "/startup-scripts", name=f"claim-00000000.{domain}", script="true")


def _asked(emulated: EmulatedApi, path: str, **given: Any) -> Any:
    result = emulated.reply(read_call("POST", path, {}, "local", given)).result
    if isinstance(result, Exception):
        raise result
    return result


def _in_checkers_words(line: dict[str, Any], mark: str) -> dict[str, Any] | None:
    """Tell of a machine's bill as a billing item, and of everything else that can be left as a group."""
    if line["kind"] != "event":
        return None
    name, what = str(line.get("name") or ""), line["what"]
    if what == "billing_item" and line["bills"] == "machine" and line["event"] in ("made", "closed"):
        host, _, domain = name.partition(".")
        event = "opened" if line["event"] == "made" else "closed"
        return {**line, "event": event, "host": host, "domain": domain}
    if what in ("network", "drive", "script", "public_ip") and line["event"] in ("made", "gone"):
        # An address has no name, and other people have none here.
        notes = name or f"address-{line['ref']}-{mark}"
        return {
            **line,
            "what": "security_group",
            "event": "made" if line["event"] == "made" else "removed",
            "notes": notes,
        }
    return None
