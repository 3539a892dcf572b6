"""The emulated Paperspace account over the wire: refusals and pages of an injected fault, bodies, and the commands."""

import contextlib
import functools
import io
import json
import stat
from collections.abc import Callable
from typing import Any

import pytest
import requests

from emulator import cli
from tests.integration.conftest import AccountEmulator
from tests.product import free_port
from tests.unit.emulated_paperspace import order

LIMIT_S = 20


class Paperspace(AccountEmulator):
    """One emulated Paperspace account, without machines behind its machines."""

    vendor = "paperspace"
    defaults = {"provisioning_s": 300.0}

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def send(self, method: str, path: str, **given: Any) -> requests.Response:
        authority = self.state / "authority.pem"
        with requests.Session() as session:
            session.trust_env = False
            session.verify = str(authority) if authority.exists() else True
            return session.request(method, f"{self.root}/v1{path}", timeout=LIMIT_S, headers=self.headers, **given)

    def names(self, path: str, **query: Any) -> list[str]:
        return [each["name"] for each in self.send("GET", path, params=query).json()["items"]]

    def order(self, name: str) -> requests.Response:
        """Order a machine in a network of its name."""
        return self.send("POST", "/machines", json=order(name) | {"networkId": self.network(name)["id"]})

    def network(self, name: str) -> dict[str, Any]:
        return self.send("POST", "/private-networks", json={"name": name, "region": "ny2"}).json()


@pytest.fixture
def paperspace(emulator_with: Callable[..., Paperspace]) -> Callable[..., Paperspace]:
    return functools.partial(emulator_with, Paperspace)


@pytest.mark.parametrize(
    ("kind", "way", "status", "code"),
    [
        *(("error", "http_429", 429, None), ("error", "too_many_requests", 429, "TOO_MANY_REQUESTS")),
        *(("error", "internal_server_error", 500, "INTERNAL_SERVER_ERROR"),),
        ("capacity", "refused", 412, "PRECONDITION_FAILED"),
    ],
)
def test_an_injected_refusal_has_the_vendors_shape_and_prevents_the_order(paperspace, kind, way, status, code):
    account = paperspace()
    account.script("machines-create", kind, way=way)
    refused = account.order("a")
    assert (refused.status_code, refused.headers.get("Retry-After")) == (status, "1" if status == 429 else None)
    assert code is None or refused.json()["code"] == code
    assert account.names("/machines") == []


def test_pages_that_come_out_of_different_orders_miss_some_and_repeat_others(paperspace):
    account = paperspace()
    for number in range(6):
        account.network(f"net-{number}")
    account.script("privateNetworks-list", "reordered", times=100)
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = account.send("GET", "/private-networks", params={"limit": 2, **after}).json()
        seen += [each["name"] for each in page["items"]]
        if not page["hasMore"] or len(seen) > 60:
            break
        after = {"after": page["nextPage"]}
    assert len(set(seen)) < 6 or len(seen) > 6


def test_a_jump_of_the_clock_bills_the_time_in_between(paperspace):
    account = paperspace(clock_rate=0.001)
    account.network("a")
    account.move_clock(40 * 86_400)
    [billed] = account.status()["billed"]
    assert 1 < float(billed["charged"]) <= 2


def test_json_that_is_announced_and_not_sent_is_refused(paperspace):
    account = paperspace()
    announced = {**account.headers, "Content-Type": "application/json"}
    machine = account.order("node").json()["data"]["id"]
    url = f"{account.root}/v1/machines/{machine}/start"
    assert requests.patch(url, headers=announced, timeout=LIMIT_S).status_code == 400
    assert requests.patch(url, headers=announced, json={}, timeout=LIMIT_S).status_code in (200, 409)
    assert requests.patch(url, headers=account.headers, timeout=LIMIT_S).status_code in (200, 409)


def test_start_status_stop_and_reset_are_this_accounts_own(tmp_path, monkeypatch):
    port = str(free_port())
    monkeypatch.setenv("MICROCLUSTER_HOME", str(tmp_path))

    def run(verb: str, *words: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            assert cli.main([verb, "paperspace", *words]) == 0
        return output.getvalue()

    try:
        started = run("start", "--machines", "none", "--port", port, "--tls")
        state = tmp_path / "emulator-paperspace"
        key = state / "paperspace-api-key"
        assert f"https://127.0.0.1:{port}" in started
        assert str(key) in started
        own = (state / "authorization").read_text().split()[-1]
        told = f"[paperspace]\napi_key = {own}\nendpoint_url = https://127.0.0.1:{port}/v1\nverify = {state / 'authority.pem'}\n"
        assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == (told, 0o600)
        assert stat.S_IMODE((state / "server.pem").stat().st_mode) == 0o600
        shown = json.loads(run("status", "--json", "--port", port))
        assert (shown["running"], shown["open_billing_items"], shown["billed"]) == (True, 0, [])
        assert not (tmp_path / "emulator").exists()
    finally:
        run("stop")
    run("reset", "--machines", "none")
    assert not state.exists()
