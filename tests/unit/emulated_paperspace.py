"""An emulated Paperspace account without a wire, whose clock goes by calls; every answer is held against the vendor's description."""

from functools import cached_property
from pathlib import Path
from typing import Any

from emulator.paperspace.account import Account
from emulator.paperspace.api import Paperspace, read_call
from emulator.paperspace.errors import ApiError
from emulator.paperspace.settings import Settings
from emulator.shared.api import Reply
from tests.unit.paperspace_contract import contract, problems_of_answer

SETTINGS = {"machines": "none", "clock_step_s": 1.0, "clock_start": "2026-01-01T00:00:00+00:00"}
ML_IN_A_BOX = "twnlo3zj"
OWN_KEY = "the account's own"
UNDESCRIBED = ("/billing/account-standing",)


class Refused(Exception):
    """A call was refused."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status} {body}")
        self.status, self.code, self.body = status, body["code"], body


class EmulatedPaperspace:
    """One account and what a client does with it."""

    def __init__(self, state: Path, **settings: Any) -> None:
        self.account = Account(Settings(state, **(SETTINGS | settings)))
        self.account.store.flush()
        self.api = Paperspace(self.account)
        self.key = self.account.settings.api_key
        self.called: set[str] = set()

    @cached_property
    def home(self) -> str:
        """The network of machines for which no other one is named."""
        return self.network("home")

    def call(self, method: str, path: str, key: str | None = OWN_KEY, **given: Any) -> Any:
        status, body = self.answer(method, path, key, **given)
        if status != 200:
            raise Refused(status, body)
        return body

    def answer(self, method: str, path: str, key: str | None = OWN_KEY, **given: Any) -> tuple[int, Any]:
        query = {name: _text(value) for name, value in given.items()} if method == "GET" else {}
        try:
            key = self.key if key == OWN_KEY else key
            call = read_call(method, path, query, key, {} if method == "GET" else given)
            result = self.api.reply(call).result
        except ApiError as refused:
            result = refused
        status, body = (result.status, result.body) if isinstance(result, ApiError) else (200, result)
        self._hold_against_the_description(method, path, status, body)
        return status, body

    def reply(self, method: str, path: str, **given: Any) -> Reply:
        return self.api.reply(read_call(method, path, {}, self.key, given))

    def order(self, name: str = "node-0", **changes: Any) -> str:
        return self.call("POST", "/machines", **(order(name) | {"networkId": self.home} | changes))["data"]["id"]

    def ready(self, name: str = "node-0", **changes: Any) -> str:
        return self.wait(self.order(name, **changes), "ready")

    def wait(self, machine: str, state: str) -> str:
        for _ in range(100):
            if self.call("GET", f"/machines/{machine}")["state"] == state:
                return machine
        raise AssertionError(f"machine {machine} did not become {state}")

    def stop(self, machine: str) -> None:
        self.call("PATCH", f"/machines/{machine}/stop")
        self.wait(machine, "off")

    def gone(self, machine: str) -> None:
        for _ in range(100):
            if self.answer("GET", f"/machines/{machine}")[0] == 404:
                return
        raise AssertionError(f"machine {machine} is not gone")

    def network(self, name: str = "train", region: str = "ny2") -> str:
        return self.call("POST", "/private-networks", name=name, region=region)["id"]

    def drive(self, network: str, name: str = "data", **changes: Any) -> dict[str, Any]:
        wanted = {"name": name, "size": 250, "region": "ny2", "networkId": network}
        return self.call("POST", "/shared-drives", **(wanted | changes))

    def _hold_against_the_description(self, method: str, path: str, status: int, body: Any) -> None:
        described = [each for each in contract()[1] if each.method == method and each.pattern.fullmatch(path)]
        if described:
            problems = problems_of_answer(method, path, status, body)
            assert not problems, problems
        self.called |= {each.name for each in described}


def order(name: str = "node-0") -> dict[str, Any]:
    return {
        "name": name,
        "machineType": "P4000x2",
        "templateId": ML_IN_A_BOX,
        "region": "ny2",
        "diskSize": 50,
        "startOnCreate": True,
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
