"""One emulated account after the other, behind the wire, in this process; each over http or over https."""

import json
import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from emulator.api import HISTORY_FILE
from emulator.connections import BreakableProtocol
from emulator.fault_injection import FaultInjector, FaultRates
from emulator.machine_reconciler import MachineReconciler
from emulator.machines.spec import NoMachines
from emulator.process import listen
from emulator.server import application
from emulator.settings import SETTINGS_FILE
from emulator.softlayer.account import Account
from emulator.softlayer.api import SoftLayer
from emulator.softlayer.client_file import CONFIG_FILE, write_client_file
from emulator.softlayer.guest_machines import GuestMachines
from emulator.softlayer.status import holdings
from emulator.tls import AUTHORITY_FILE, write_identity
from emulator.vendors import load_settings
from tools.chaos.bystanders import settle
from tools.chaos.wire import Wire

CLOCK_RATE = 100
"""Virtual seconds in a real one; slow enough that a stalled computer does not look like an account that never answers."""
SETTINGS = {
    "history": True,
    "clock_rate": CLOCK_RATE,
    "provisioning_s": 5.0,
    "reclaim_s": 1.0,
    "instance_limit": 200,
    "calls_per_second": 0,
    "public_subnet": "198.51.100.0/24",
}


@dataclass(frozen=True)
class Rented:
    """An account of one run alone."""

    account: Account
    folder: Path

    @property
    def config_file(self) -> Path:
        """The official client's file."""
        return self.folder / CONFIG_FILE

    def stop_faults(self) -> None:
        """Let nothing go wrong any more; lists that lag behind go on lagging."""
        with self.account.lock:
            self.account.fault_injector = no_faults(self.account)

    def history(self) -> list[dict[str, Any]]:
        """Read what has happened in it until now."""
        with self.account.lock:
            return [json.loads(line) for line in (self.folder / HISTORY_FILE).read_text().splitlines()]


class Door:
    """One port that leads to the wire."""

    def __init__(self, wire: Any, identity: Path | None = None) -> None:
        self._socket = listen("127.0.0.1", 0)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            wire,
            http=BreakableProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            ssl_certfile=identity,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.should_exit = True
        self._thread.join(10)


class AccountServer:
    """Listens on two ports of its own, one of them with TLS; whichever account is open answers, over the wire."""

    def __init__(self) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.wire = Wire()
        self._folder = tempfile.TemporaryDirectory(prefix="microcluster-chaos-")
        identity = write_identity(Path(self._folder.name))
        self._authority = identity.with_name(AUTHORITY_FILE)
        self._plain, self._secure = Door(self.wire), Door(self.wire, identity)

    @contextmanager
    def opened(self, folder: Path, **settings: Any) -> Iterator[Rented]:
        """Open an account in a folder, in which only somebody else's things are, and close it at the end."""
        folder.mkdir(parents=True)
        values = {**SETTINGS, **settings}
        (folder / SETTINGS_FILE).write_text("".join(f"{key} = {_toml(value)}\n" for key, value in values.items()))
        door = self._secure if values.get("tls") else self._plain
        chosen = load_settings(folder, {"port": door.port, "machines": "none"})
        shutil.copy(self._authority, chosen.state)
        write_client_file(chosen)
        account = Account(chosen)
        account.store.flush()
        reconciler = MachineReconciler(account, GuestMachines(account), NoMachines())
        reconciler.start()
        api = SoftLayer(account)
        injector, account.fault_injector = account.fault_injector, no_faults(account)
        settle(api)
        account.fault_injector = injector
        self.wire.lead_to(application(account, api.routes(), holdings, door.port))
        try:
            yield Rented(account, chosen.state)
        finally:
            reconciler.stop()
            with account.lock:
                account.store.close()
                api.history.close()

    def close(self) -> None:
        """Stop listening."""
        self._plain.close()
        self._secure.close()
        self._folder.cleanup()


def no_faults(account: Any) -> FaultInjector:
    """Return what injects nothing into an account, whichever it is."""
    return FaultInjector(0, account.settings.FAULT_MODEL, FaultRates())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)
