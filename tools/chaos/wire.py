"""The wire between the provider and the account: it numbers the calls and lets something happen at a chosen moment of one."""

import enum
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

Message = dict[str, Any]
Application = Callable[..., Awaitable[None]]
API = re.compile(r"/v\d")
METHOD_NAME = re.compile(rb"<methodName>\s*(\w+)\s*</methodName>")
READS = ("get", "is", "verify", "generateOrderTemplate", "find", "check", "GET ")


class Moment(enum.StrEnum):
    """The three moments of a call at which something may happen."""

    BEFORE = "before the call is sent on"
    ACCEPTED = "after the account has answered, before the reply"
    REPLIED = "after the reply, before the state is written"


@dataclass(frozen=True)
class Strike:
    """What happens at which moment of which call."""

    number: int
    moment: Moment
    act: Callable[[], None]
    hold: Callable[[], None] = lambda: None
    """Called before the reply leaves: from now on nothing may be written into the state until ``act`` is over."""
    is_cut: Callable[[], bool] = lambda: False
    """Asked after ``act``: whether the caller is gone, so that what was not sent on never will be."""


class Wire:
    """Passes every call of every protocol on to the account behind it."""

    def __init__(self) -> None:
        self.account: Application | None = None
        self.calls: list[str] = []
        self.strike: Strike | None = None
        self.struck = threading.Event()
        self._lock = threading.Lock()

    def lead_to(self, account: Application) -> None:
        """Begin anew with another account."""
        self.account = account
        self.arm(None)
        self.struck.clear()

    def arm(self, strike: Strike | None) -> None:
        """Count from one again and wait for the call."""
        with self._lock:
            self.calls, self.strike = [], strike
            if strike:
                self.struck.clear()

    def writes(self) -> list[str]:
        """List the calls that may have changed something."""
        return [call for call in self.calls if not call.split("::")[-1].startswith(READS)]

    async def __call__(self, scope: Message, receive: Application, send: Application) -> None:
        if scope["type"] != "http" or not API.search(scope["path"]):
            await self.account(scope, receive, send)
            return
        body = await _whole(receive)
        strike = self._numbered(_method(scope, body))
        if strike and strike.moment is Moment.BEFORE:
            await self._strike(strike)
            if strike.is_cut():
                return
        answer = await _answered(self.account, scope, body)
        if strike and strike.moment is Moment.ACCEPTED:
            await self._strike(strike)
        if strike and strike.moment is Moment.REPLIED:
            strike.hold()
        for message in answer:
            await send(message)
        if strike and strike.moment is Moment.REPLIED:
            await self._strike(strike)

    def _numbered(self, method: str) -> Strike | None:
        with self._lock:
            self.calls.append(method)
            strike = self.strike
            return strike if strike and strike.number == len(self.calls) else None

    async def _strike(self, strike: Strike) -> None:
        await run_in_threadpool(strike.act)
        self.struck.set()


def _method(scope: Message, body: bytes) -> str:
    """Name the method, as far as the name is there to see."""
    if found := METHOD_NAME.search(body):
        return f"{scope['path'].rsplit('/', 1)[-1]}::{found[1].decode()}"
    return f"{scope['method']} {scope['path']}"


async def _whole(receive: Application) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _answered(account: Application, scope: Message, body: bytes) -> list[Message]:
    """Let the account answer to the end and keep what it says."""
    said: list[Message] = []
    asked = False

    async def receive() -> Message:
        nonlocal asked
        if asked:
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": body, "more_body": False}

    async def keep(message: Message) -> None:
        said.append(message)

    await account(scope, receive, keep)
    return said
