"""An emulated account on a free loopback port, for the tests that go over the wire."""

import contextlib
import itertools
import json
import os
import signal
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from emulator.shared.settings import Settings
from tests.chaos.fork_server import Process, fork
from tests.integration.provider_cluster import Onlooker
from tests.integration.provider_driver import Driver
from tests.product import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
READY_TIMEOUT_S = 60
# Seconds of the account's clock; at rate 600 a guest is being built for half a second.
SETTINGS = {
    "provisioning_s": 300.0,
    "reclaim_s": 180.0,
    "instance_limit": 200,
    "calls_per_second": 0,  # tests ask faster than a person's program would
    "public_subnet": "198.51.100.0/24",
}


class AccountEmulator:
    """One emulator process with a state folder of its own and no machines behind its guests."""

    vendor = "softlayer"
    defaults: Mapping[str, Any] = SETTINGS

    def __init__(self, state: Path, **settings: Any) -> None:
        self.state = state
        self.port = free_port()
        self.root = f"{'https' if settings.get('tls') else 'http'}://127.0.0.1:{self.port}"
        self.endpoint = f"{self.root}/xmlrpc/v3.1/"
        self.rest_endpoint = f"{self.root}/rest/v3.1/"
        self.config_file = state / "softlayer.conf"
        self.clock_rate = settings.pop("clock_rate", 600)
        self._process: Process | None = None
        self._settings = {**self.defaults, **settings}
        state.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Run the server and return once it answers."""
        (self.state / "settings.toml").write_text(_as_toml(self._settings))
        places = ["--state", self.state, "--port", self.port, "--machines", "none", "--clock-rate", self.clock_rate]
        words = ["serve", self.vendor, *map(str, places)]
        self._process = fork("emulator.cli", words, os.environ, self.state / "emulator.log")
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline and not self._process.ended(0.02):
            with contextlib.suppress(OSError):
                self.status()
                return
        pytest.fail(f"the emulator did not start:\n{(self.state / 'emulator.log').read_text()[-2000:]}")

    def stop(self) -> None:
        """End the server, gently."""
        if self._process:
            self._process.signal(signal.SIGTERM)
            assert self._process.ended(30), "the emulator did not end"
            self._process.release()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def restart(self, **changes: Any) -> None:
        """End the server and run it again over the same state, with some settings changed."""
        self.stop()
        self._settings |= changes
        self.start()

    def status(self) -> dict[str, Any]:
        """Status of the server's account."""
        return json.loads(self._admin("status"))

    def script(self, method: str, kind: str, **more: Any) -> None:
        """Have the next call of a method meet a fault."""
        self._admin("faults", json.dumps({"method": method, "kind": kind, **more}).encode())

    def move_clock(self, seconds: float) -> None:
        """Set the account's clock, which is this computer's at first."""
        self._admin("clock", json.dumps({"seconds": seconds}).encode())

    def order_in_portal(self, kind: str, **wanted: Any) -> dict[str, int]:
        """Order a volume or a VLAN as a person does in the vendor's portal; see ``emulator.softlayer.portal.order``."""
        return json.loads(self._admin(f"portal/{kind}", json.dumps(wanted).encode()))

    @property
    def key(self) -> str:
        """The account's key."""
        return (self.state / Settings.KEY_FILE).read_text().split()[-1]

    def _admin(self, path: str, body: bytes | None = None) -> bytes:
        authority = self.state / "authority.pem"
        context = ssl.create_default_context(cafile=authority) if authority.exists() else None
        secure = urllib.request.HTTPSHandler(context=context)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), secure)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        with opener.open(urllib.request.Request(f"{self.root}/{path}", body, headers), timeout=10) as answer:
            return answer.read()


def _as_toml(settings: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in settings.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture(scope="module", autouse=True)
def _private_files() -> Iterator[None]:
    """A file with a key that others may read is refused."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def account_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    """The account that the tests of one module share."""
    with AccountEmulator(tmp_path_factory.mktemp("emulator")) as emulator:
        yield emulator


@pytest.fixture
def emulator_with(tmp_path: Path) -> Iterator[Callable[..., AccountEmulator]]:
    """An account of one test alone, with settings of its own."""
    numbers = itertools.count()
    with contextlib.ExitStack() as running:

        def start(kind: type[AccountEmulator] = AccountEmulator, **settings: Any) -> AccountEmulator:
            return running.enter_context(kind(tmp_path / f"emulator-{next(numbers)}", **settings))

        yield start


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The official client also reads the home folder and the environment, where a real account's key may be."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("SL_USERNAME", "SL_API_KEY", "SLCLI_CONFIG", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def onlooker(account_emulator: AccountEmulator) -> Iterator[Onlooker]:
    """Look at the account as its owner would, and cancel what a test has left."""
    watching = Onlooker(account_emulator.config_file)
    yield watching
    watching.clean()


@pytest.fixture(scope="module")
def running(account_emulator: AccountEmulator) -> Iterator[Driver]:
    with Driver(account_emulator.config_file) as driver:
        yield driver


@pytest.fixture
def driver(running: Driver, onlooker: Onlooker) -> Driver:
    """The provider that the tests of one module share, over an account that is cleaned after each."""
    running.ears.said.clear()
    return running
