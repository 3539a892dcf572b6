"""What the provider sends to each account for one order and its end."""

import json
import os
import re
import xmlrpc.client
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from frozen import as_json, compare, with_names

from tests.chaos.accounts import CLOCK_RATE, AccountServer, Rented
from tests.chaos.fork_server import PROVIDER, fork
from tests.chaos.market import HOSTNAMES, Market
from tests.chaos.paperspace import PAPERSPACE
from tests.chaos.provider import Provider
from tests.chaos.softlayer import SOFTLAYER

DIFFERING = (
    ("HOST-KEY", r"-----BEGIN OPENSSH PRIVATE KEY-----.*?-----END OPENSSH PRIVATE KEY-----"),
    ("PUBLIC-KEY", r"ssh-ed25519 (?!AAAAC3NzaC1lZDI1NTE5AAAAIGZpZnR5)[A-Za-z0-9+/=]+"),
    ("ATTEMPT", r"(?<=boot-gpu-0-)[0-9a-f]{16}"),
    ("JOURNAL", r"(?<=journal )[0-9a-f]{8}|(?<=claim-)[0-9a-f]{8}"),
    ("TIME", r"\b\d{4}-\d\d-\d\dT[0-9:.+-]+Z?|\b1[78]\d{8}(?=\b|s-)"),
)
"""Values that differ each time, with the words of their names."""
READ = re.compile(r"^GET | get\w+$")


class Recorder:
    """An account that remembers what it was asked."""

    def __init__(self, account: Callable[..., Any]) -> None:
        self.account, self.asked = account, []

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        message = await receive()

        async def again() -> dict:
            return message

        self.asked.append(readable(scope, message.get("body", b"")))
        await self.account(scope, again, send)


def readable(scope: dict, body: bytes) -> dict[str, Any]:
    """Return a request without its login, which is the account's own."""
    if b"<methodCall>" in body:
        (head, *arguments), method = xmlrpc.client.loads(body)
        headers = {name: value for name, value in head["headers"].items() if name != "authenticate"}
        limit = {"resultLimit": head["resultLimit"]} if "resultLimit" in head else {}
        return {"call": f"POST {scope['path']} {method}", "headers": {**headers, **limit}, "arguments": arguments}
    query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
    content = {"body": json.loads(body)} if body else {}
    return {"call": f"{scope['method']} {scope['path']}{query}", **content}


@pytest.fixture(scope="module")
def server() -> Iterator[AccountServer]:
    opened = AccountServer()
    yield opened
    opened.close()


@pytest.mark.parametrize("market", [SOFTLAYER, PAPERSPACE], ids=lambda market: market.vendor)
def test_an_order_and_its_end_are_the_same_requests(server: AccountServer, market: Market, tmp_path: Path) -> None:
    with server.opened(tmp_path / "account", market) as rented:
        recorder = server.wire.account = Recorder(server.wire.account)
        found = dict(requests(market, rented, recorder, tmp_path / "home"))
    compare(f"requests/{market.vendor}.json", with_names(as_json(found), DIFFERING))


def requests(market: Market, rented: Rented, recorder: Recorder, home: Path) -> Iterator[tuple[str, Any]]:
    home.mkdir()
    market.prepare(home)
    environment = {**os.environ, "MICROCLUSTER_HOME": str(home)}
    settings = {market.key_setting: str(rented.config_file)}

    def start(address: str):
        return fork(PROVIDER.replace("softlayer", market.vendor), [address], environment, home / "log")

    provider, made = Provider(start, 1 / CLOCK_RATE, market.vendor, **settings), {}
    for declared in [each for level in market.program for each in level if each.name != HOSTNAMES[1]]:
        inputs = provider.check(declared.kind, declared.name, None, declared.inputs(made))
        made[declared.name] = provider.create(declared.kind, declared.name, inputs)
        yield f"create {declared.kind}", taken(recorder)
    for each in reversed(made.values()):
        provider.delete(each)
        yield f"delete {each.kind}", taken(recorder)
    provider.leave()


def taken(recorder: Recorder) -> dict[str, Any]:
    """Return what was asked since the last time: what reads sorted and once, as waits repeat it, the rest in its order."""
    asked, recorder.asked = recorder.asked, []
    reads = {as_json(each): each for each in asked if READ.search(each["call"])}
    writes = groupby(
        (each for each in asked if not READ.search(each["call"])), lambda each: each["call"].rpartition("/")[0]
    )
    return {
        "reads": [reads[key] for key in sorted(reads)],
        "in order": [each for _, alike in writes for each in sorted(alike, key=as_json)],  # What is alike goes at once.
    }
