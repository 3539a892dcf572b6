"""The wire between the provider and the account: it numbers the calls and lets something happen at a chosen moment of one."""

import enum
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

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
    """An event at a moment of a call."""

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
        self.is_struck = False
        self._lock = threading.Lock()

    def lead_to(self, account: Application) -> None:
        """Begin anew with another account."""
        self.account = account
        self.is_struck = False
        self.arm(None)

    def arm(self, strike: Strike | None) -> None:
        """Count from one again and wait for the call."""
        with self._lock:
            self.calls = []
            self.strike = strike

    def writes(self) -> list[str]:
        """List the calls that may have changed something."""
        return [call for call in self.calls if not call.split("::")[-1].startswith(READS)]

    async def __call__(self, scope: Message, receive: Application, send: Application) -> None:
        if scope["type"] != "http" or not API.search(scope["path"]):
            await self.account(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        strike = self._due(_method(scope, body))
        moment = strike.moment if strike else None
        if moment is Moment.BEFORE:
            await self._carry_out(strike)
            if strike.is_cut():
                return
        answer = await _answered(self.account, scope, body)
        if moment is Moment.ACCEPTED:
            await self._carry_out(strike)
        if moment is Moment.REPLIED:
            strike.hold()
        for message in answer:
            await send(message)
        if moment is Moment.REPLIED:
            await self._carry_out(strike)

    def _due(self, method: str) -> Strike | None:
        """Count the call; return what happens at it."""
        with self._lock:
            self.calls.append(method)
            is_due = self.strike and self.strike.number == len(self.calls)
            return self.strike if is_due else None

    async def _carry_out(self, strike: Strike) -> None:
        await run_in_threadpool(strike.act)
        self.is_struck = True


def _method(scope: Message, body: bytes) -> str:
    """Name the method, as far as the name is there to see."""
    if found := METHOD_NAME.search(body):
        return f"{scope['path'].rsplit('/', 1)[-1]}::{found[1].decode()}"
    return f"{scope['method']} {scope['path']}"


async def _answered(account: Application, scope: Message, body: bytes) -> list[Message]:
    """Let the account answer to the end and keep what it says."""
    whole = {"type": "http.request", "body": body, "more_body": False}
    coming = chain([whole], repeat({"type": "http.disconnect"}))
    said: list[Message] = []

    async def receive() -> Message:
        return next(coming)

    async def keep(message: Message) -> None:
        said.append(message)

    await account(scope, receive, keep)
    return said
