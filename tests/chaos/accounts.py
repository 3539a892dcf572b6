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

import requests
import uvicorn

from emulator.machines.certificates import AUTHORITY_FILE, write_identity
from emulator.machines.spec import NoMachines
from emulator.shared.api import HISTORY_FILE
from emulator.shared.fault_injection import FaultInjector, FaultRates
from emulator.shared.machine_reconciler import MachineReconciler
from emulator.shared.process import listen
from emulator.shared.response_faults import BreakableProtocol
from emulator.shared.server import application
from emulator.vendors import VENDORS, load_settings
from tests.chaos.market import Line, Market
from tests.chaos.softlayer import SOFTLAYER
from tests.chaos.wire import Wire

CLOCK_RATE = 100
"""Virtual seconds in a real one; slow enough that a stalled computer does not look like an account that never answers."""
SETTINGS = {
    "machines": "none",
    "history": True,
    "clock_rate": CLOCK_RATE,
    "provisioning_s": 5.0,
    "calls_per_second": 0,
}
HOUR_S = 3600


@dataclass(frozen=True)
class Rented:
    """An account of one run alone."""

    market: Market
    account: Any
    folder: Path

    @property
    def config_file(self) -> Path:
        """The file that says where the account is, and how to log in."""
        return self.folder / VENDORS[self.market.vendor].client_file

    def stop_faults(self) -> FaultInjector:
        """Let nothing go wrong any more; lists that lag behind go on lagging. Return what went wrong."""
        with self.account.lock:
            injector, self.account.fault_injector = self.account.fault_injector, _no_faults(self.account)
        return injector

    def inject(self, faults: FaultInjector) -> None:
        """Let things go wrong from now on."""
        with self.account.lock:
            self.account.fault_injector = faults

    def pass_hours(self, hours: float) -> None:
        """Let the account's clock go on, so that a charge grows."""
        with self.account.lock:
            self.account.clock.step(hours * HOUR_S)

    def history(self) -> list[Line]:
        """Read what has happened in it until now, in the words of the checker."""
        with self.account.lock:
            lines = (self.folder / HISTORY_FILE).read_text().splitlines()
        return [told for line in lines for told in self.market.in_checkers_words(json.loads(line))]


class Door:
    """One port that leads to the wire."""

    def __init__(self, wire: Wire, identity: Path | None = None) -> None:
        self._socket = listen("127.0.0.1", 0)
        self.port: int = self._socket.getsockname()[1]
        quiet = {"log_config": None, "access_log": False, "lifespan": "off", "date_header": False}
        self._server = uvicorn.Server(uvicorn.Config(wire, http=BreakableProtocol, ssl_certfile=identity, **quiet))
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
    def opened(self, folder: Path, market: Market = SOFTLAYER, **settings: Any) -> Iterator[Rented]:
        """Open an account in a folder, in which only somebody else's things are, and close it at the end."""
        folder.mkdir(parents=True)
        values = {**SETTINGS, **market.settings, **settings}
        door = self._secure if values.get("tls") else self._plain
        vendor = VENDORS[market.vendor]
        chosen = load_settings(folder, {**values, "port": door.port}, market.vendor)
        shutil.copy(self._authority, chosen.state)
        vendor.write_client_file(chosen)
        account = vendor.account(chosen)
        account.store.flush()
        reconciler = MachineReconciler(account, vendor.machine_source(account), NoMachines())
        if account.waits_for_machines:
            reconciler.start()
        injector, account.fault_injector = account.fault_injector, _no_faults(account)
        self.wire.lead_to(application(account, vendor.routes(account), vendor.holdings, door.port))
        market.settle(lambda path, body: self._post(market.authorization(chosen.api_key), path, body))
        account.fault_injector = injector
        try:
            yield Rented(market, account, chosen.state)
        finally:
            if account.waits_for_machines:
                reconciler.stop()
            with account.lock:
                account.store.close()

    def close(self) -> None:
        """Stop listening."""
        self._plain.close()
        self._secure.close()
        self._folder.cleanup()

    def _post(self, authorization: str, path: str, body: Any) -> Any:
        with requests.Session() as session:
            session.trust_env = False
            headers = {"Authorization": authorization}
            answer = session.post(f"http://127.0.0.1:{self._plain.port}{path}", json=body, headers=headers, timeout=60)
        assert answer.ok, answer.text
        return answer.json()


def _no_faults(account: Any) -> FaultInjector:
    return FaultInjector(0, account.settings.FAULT_MODEL, FaultRates())
