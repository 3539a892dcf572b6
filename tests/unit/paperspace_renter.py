"""A stack that rents from an emulated Paperspace account over a real socket, with the provider in this process."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from emulator.machines.spec import NoMachines
from emulator.paperspace.settings import Settings
from emulator.paperspace.vendor import PAPERSPACE as EMULATED
from emulator.shared.machine_reconciler import MachineReconciler
from emulator.shared.server import application
from microcluster.accounts.paperspace.__main__ import PAPERSPACE
from microcluster.accounts.shared.journal import Journal
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.resource import Created, Live
from microcluster.core.home import Owner, owner_mark
from microcluster.core.ssh_key import KeyPair
from tests.chaos.accounts import Door
from tests.chaos.wire import Wire

STACK = "pair"
OTHER = f"{STACK}-00000000.microcluster"
"""Name of things that bear the mark of another stack."""
CLOCK_RATE = 200
LIMIT_S = 3000.0
PLACE = {"region": "ny2", "machineType": "P4000x2", "templateId": "twnlo3zj", "diskGb": 50, "publicIpType": "static"}


@dataclass
class Said:
    """Messages of the provider to a person."""

    lines: list[str] = field(default_factory=list)

    def info(self, message: str) -> None:
        self.lines.append(message)

    progress = warn = info


class EmulatedTeam:
    """An account behind a port, with a key file."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        wire = Wire()
        self._door = Door(wire)
        folder.mkdir(parents=True)
        chosen = Settings(folder, port=self._door.port, machines="none", clock_rate=CLOCK_RATE, **settings)
        self.account = EMULATED.account(chosen)
        self.account.store.flush()
        self.key_file = EMULATED.write_client_file(chosen)
        wire.lead_to(application(self.account, EMULATED.routes(self.account), EMULATED.holdings, self._door.port))
        self._reconciler = MachineReconciler(self.account, EMULATED.machine_source(self.account), NoMachines())
        self._reconciler.start()

    def fault(self, method: str, kind: str, **more: Any) -> None:
        """Let the next call of a method go wrong."""
        injector = self.account.fault_injector
        with self.account.lock:
            injector.scripted.append(injector.model.read_scripted({"method": method, "kind": kind, **more}))

    def names(self, kind: str) -> list[str]:
        """List what the account holds of a kind."""
        with self.account.lock:
            return sorted(each.name for each in self.account.store.tables[kind].read_all())

    def close(self) -> None:
        """Stop answering."""
        self._reconciler.stop()
        self._door.close()


def make_keys(home: Path, stack: str = STACK) -> str:
    """Make a stack's keys, and return the public one."""
    folder = home / "keys" / stack
    folder.mkdir(parents=True, exist_ok=True)
    key = KeyPair.of(Ed25519PrivateKey.generate())
    (folder / "id_ed25519").write_text(key.private)
    return key.public


class Renter:
    """One process of the provider, and the inputs of a small cluster."""

    def __init__(self, key_file: Path, public_key: str) -> None:
        self.public_key, self.owner = public_key, Owner(STACK, owner_mark(public_key))
        self.said = Said()
        self._stop = threading.Event()
        self.session = PAPERSPACE.session({"apiKeyFile": str(key_file), "timeScale": str(1 / CLOCK_RATE)}, self._stop)

    @property
    def market(self) -> Any:
        return self.session.market()

    def inputs(self, kind: str, **changes: Any) -> dict[str, Any]:
        """Write the inputs of the stack's resource of a kind."""
        every = {
            "Ledger": {**PLACE, "stack": STACK, "nodes": 2, "driveGb": 250},
            "PrivateNetwork": {"region": "ny2", "name": "net"},
            "SharedDrive": {"region": "ny2", "name": "data", "sizeGb": 250, "networkId": "none"},
            "Machine": {**PLACE, "hostname": "gpu-0", "networkId": "none", "publicKey": self.public_key},
        }
        return {"mark": self.owner.mark, **every[kind], **changes}

    def create(self, kind: str, logical_name: str = "", **changes: Any) -> Created:
        """Have it made; in a program it need not have the name that it has in the account."""
        inputs = self.inputs(kind, **changes)
        resource = PAPERSPACE.resource(f"paperspace:index:{kind}")
        assert resource.check(inputs, {}) == []
        return resource.create(self.operation(kind, {"name": logical_name} if logical_name else inputs), inputs)

    def read(self, kind: str, made: Created | str, inputs: Mapping[str, Any]) -> Live | None:
        """Have it read; without inputs it is imported."""
        resource_id, old = (made, {}) if isinstance(made, str) else (made.resource_id, made.outputs)
        resource = PAPERSPACE.resource(f"paperspace:index:{kind}")
        return resource.read(self.operation(kind, inputs), resource_id, inputs, old)

    def update(self, kind: str, made: Created, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Have it changed."""
        resource = PAPERSPACE.resource(f"paperspace:index:{kind}")
        return resource.update(self.operation(kind, inputs), made.resource_id, inputs, made.outputs)

    def delete(self, kind: str, made: Created | str, limit_s: float = LIMIT_S, **changes: Any) -> None:
        """Have it removed."""
        resource_id, old = (made, {}) if isinstance(made, str) else (made.resource_id, made.outputs)
        inputs = self.inputs(kind, **changes)
        PAPERSPACE.resource(f"paperspace:index:{kind}").delete(
            self.operation(kind, inputs, limit_s), resource_id, inputs, old
        )

    def operation(self, kind: str, inputs: Mapping[str, Any], limit_s: float = LIMIT_S) -> Operation:
        """Begin an operation as the engine does."""
        name = inputs.get("hostname") or inputs.get("name") or kind
        urn = f"urn:pulumi:{STACK}::microcluster::paperspace:index:{kind}::{name}"
        return Operation(urn, self.session, self.said, limit_s)


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def team_of(tmp_path):
    """Open accounts with settings, and close them at the end."""
    opened: list[EmulatedTeam] = []

    def team_with(**settings) -> EmulatedTeam:
        opened.append(EmulatedTeam(tmp_path / f"account-{len(opened)}", **settings))
        return opened[-1]

    yield team_with
    for each in opened:
        each.close()


@pytest.fixture
def team(team_of) -> EmulatedTeam:
    return team_of()


@pytest.fixture
def renter(home, team) -> Renter:
    return Renter(team.key_file, make_keys(home))


def network(team: EmulatedTeam, renter: Renter, **changes) -> str:
    return renter.create("PrivateNetwork", **changes).resource_id


def open_items(team: EmulatedTeam) -> list[str]:
    with team.account.lock:
        return sorted(item.kind for item in team.account.store.billing_items.living())


def forget_answers(renter: Renter, *made: Created) -> None:
    """Leave the journal as if the provider was killed before the answers to these orders came."""
    path = Journal(STACK, renter.owner.mark, "").path
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not any(each.resource_id in line for each in made)))
