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
WHEN_LATE = "getOrders"
"""Read only where a guest is late, as on a busy computer."""


class Recorder:
    """An account that remembers what it was asked."""

    def __init__(self, account: Callable[..., Any]) -> None:
        self.account, self.asked, self.seen = account, [], 0

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        message = await receive()

        async def again() -> dict:
            return message

        self.asked.append(readable(scope, message.get("body", b"")))
        await self.account(scope, again, send)

    def reads(self) -> list[Any]:
        """Return every read once, sorted: how often one is repeated is a matter of time."""
        known = {as_json(each): each for each in self.asked if READ.search(each["call"])}
        known = {key: each for key, each in known.items() if not each["call"].endswith(WHEN_LATE)}
        return [known[key] for key in sorted(known)]

    def writes(self) -> list[Any]:
        """Return what else was asked since the last time; what is alike goes at once, in any order."""
        new = [each for each in self.asked[self.seen :] if not READ.search(each["call"])]
        self.seen = len(self.asked)
        alike = groupby(new, lambda each: each["call"].rpartition("/")[0])
        return [each for _, group in alike for each in sorted(group, key=as_json)]


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
        yield f"create {declared.kind}", recorder.writes()
    for each in reversed(made.values()):
        provider.delete(each)
        yield f"delete {each.kind}", recorder.writes()
    provider.leave()
    yield "reads", recorder.reads()
