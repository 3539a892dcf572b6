"""Requests of the vendor's client `pspace`, and its reading of answers, from its source, against the emulated account.

Source: Paperspace/cli, commit c7bdd42 (8 February 2026), api/client.ts, api/*.ts and commands/. Facts used here:

- every call announces JSON, also with no body; PATCH sends {}, DELETE nothing;
- an empty text, 0 and false never leave the client, neither in the query nor in the body: `--start-on-create=false` is not sent;
- before an order it asks GET /billing/account-standing, which no document has;
- a refusal may have code, message and issues with messages, and nothing else; the code has to be one that it knows.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.emulated_paperspace import EmulatedPaperspace

# The client's words, and what it sends for them: method, path, input.
ORDER = {"name": "node-0", "machineType": "P4000x2", "templateId": "twnlo3zj", "region": "ny2", "diskSize": 50}
LIST = {"limit": 20, "orderBy": "dtCreated", "order": "asc"}
SENT = {
    "login": ("GET", "/auth/session", {}),
    "os-template list": ("GET", "/os-templates", {"limit": 20, "orderBy": "name"}),
    "machine list": ("GET", "/machines", LIST),
    "machine create": ("POST", "/machines", ORDER | {"publicIpType": "dynamic"}),
    "machine-event list": ("GET", "/machine-events", LIST | {"machineId": "ps1"}),
    "startup-script create": ("POST", "/startup-scripts", {"name": "a", "script": "true", "isRunOnce": True}),
}
KEYS_OF_REFUSAL = {"code", "message", "issues"}


@pytest.fixture
def account(tmp_path: Path) -> EmulatedPaperspace:
    return EmulatedPaperspace(tmp_path)


@pytest.mark.parametrize("words", SENT)
def test_what_the_client_sends_is_accepted(account, words):
    method, path, given = SENT[words]
    network = {"networkId": account.home} if words == "machine create" else {}
    assert account.answer(method, path, **given, **network)[0] == 200


def test_the_client_finds_the_standing_that_it_asks_for(account):
    standing: dict[str, Any] = account.call("GET", "/billing/account-standing")
    assert standing.keys() == {"isInGoodStanding", "hasPaymentMethod", "isAdminLocked", "messages"}


def test_a_machine_whose_start_the_client_does_not_mention_starts(account):
    account.wait(account.call("POST", "/machines", **ORDER, networkId=account.home)["data"]["id"], "ready")


@pytest.mark.parametrize(
    ("method", "path", "given"),
    [
        ("GET", "/machines/ps1", {}),
        ("GET", "/machines", {"limit": 500}),
        ("POST", "/machines", {"name": ""}),
        ("PATCH", "/machines/ps1/start", {}),
        ("GET", "/snapshots", {}),
    ],
)
def test_the_client_can_read_each_refusal(account, method, path, given):
    status, body = account.answer(method, path, **given)
    assert status >= 400
    assert body.keys() <= KEYS_OF_REFUSAL
    assert all(each.keys() == {"message"} for each in body.get("issues", []))
