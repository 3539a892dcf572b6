"""Base of every emulated API: one call at a time, a rate limit, injected faults, stale lists and a history."""

import json
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from emulator.shared.account import EmulatedAccount
from emulator.shared.fault_injection import ERROR_OBJECT, HELD, NO_FAULT, STALE, Call, InjectedFault
from emulator.shared.response_faults import send
from emulator.shared.store import Change, RecordVersions

HISTORY_FILE = "history.jsonl"
WINDOW_S = 1.0
LOG = logging.getLogger(__name__)
MOMENTS = ("provisioned", "cancelled", "closed")  # fields that are None until the event of the same name
STATES = ("status", "state")  # fields whose every new value is an event


class Refusal(Exception):
    """A call that is refused, with the vendor's code."""

    code: str
    not_emulated: str = ""  # what the vendor has and the emulator has not


@dataclass(frozen=True)
class Reply:
    """Result of a call, and the fault with which its answer is sent."""

    result: Any
    injected: InjectedFault = NO_FAULT


class RateLimit:
    """The limit on calls per real second, as a sliding second; a refused call does not count."""

    def __init__(self, calls_per_second: int, seconds: Callable[[], float] = time.monotonic) -> None:
        self._limit = calls_per_second
        self._seconds = seconds
        self._passed: deque[float] = deque()

    def exceeded(self) -> bool:
        """Count one more call; return whether it is over the limit."""
        if not self._limit:
            return False
        now = self._seconds()
        while self._passed and self._passed[0] <= now - WINDOW_S:
            self._passed.popleft()
        if len(self._passed) >= self._limit:
            return True
        self._passed.append(now)
        return False


class Api(ABC):
    """The calls of one account; a vendor says who may call, what a call does, and how an answer looks on the wire."""

    TOO_MANY_CALLS: ClassVar[InjectedFault]  # what a call beyond the rate limit meets

    def __init__(self, account: Any) -> None:
        self.account: Any = account
        settings = account.settings
        self._history = (settings.state / HISTORY_FILE).open("a", buffering=1) if settings.history else None
        if self._history:
            account.store.watchers.append(self._record_events)
        self._limit = RateLimit(settings.calls_per_second)
        self._versions = RecordVersions(account.store, lambda: account.now)
        self._held: list[tuple[float, Call]] = []

    @abstractmethod
    def routes(self) -> list[Route]:
        """The vendor's paths, and those for what people do outside the API."""

    @abstractmethod
    def check(self, call: Any) -> Any:
        """Return the caller, or refuse the call."""

    @abstractmethod
    def advance(self) -> bool:
        """Do what is due on the account's clock; return whether anything was."""

    @abstractmethod
    def seen_by(self, account: Any, caller: Any) -> EmulatedAccount:
        """The account without what the caller is not shown, for reading."""

    @abstractmethod
    def carry_out(self, account: Any, call: Any, injected: InjectedFault) -> Any:
        """Carry out the call; lists are filtered and paged."""

    @abstractmethod
    def about(self, call: Any) -> str | None:
        """The name of what a call is about: faults are counted by it, because ids depend on the order of threads."""

    @abstractmethod
    def facts_of(self, record: Any) -> dict[str, Any]:
        """The history's facts of a record beside its id: the name that its owner gave it, and its price."""

    @abstractmethod
    def refusal(self, fault: InjectedFault) -> Refusal:
        """The answer to a call that an injected fault prevents."""

    @abstractmethod
    def error_object(self, response: Response) -> Response:
        """An error where an answer was expected, with status 200."""

    async def respond(
        self, request: Request, read: Callable[[Request, bytes], Call], write: Callable[[Reply], Response]
    ) -> Response:
        """Answer an HTTP request, as ``read`` understands it and ``write`` words the reply."""
        body = await request.body()
        reply = await run_in_threadpool(self._reply_to, request, body, read)
        response = write(reply)
        if reply.injected.way == ERROR_OBJECT:
            response = self.error_object(response)
        return await send(request, response, reply.injected)

    def reply(self, call: Any) -> Reply:
        """Carry out a call unless the rate limit or a fault prevents it, and record the outcome."""
        with self.account.lock:
            self._carry_out_held()
            reply = self._limited(call)
            refused = reply.result if isinstance(reply.result, Refusal) else None
            if refused:
                LOG.info("%s(%s): %s", call.name, call.identifier or "", refused)
                self._count(refused)
            self._record(call, refused, reply.injected)
            return reply

    def answer(self, call: Any, injected: InjectedFault = NO_FAULT) -> Any:
        """Answer a call, or raise the refusal; a write that is refused changes nothing."""
        account = self.account
        with account.lock:
            caller = self.check(call)
            if self.advance():
                account.changed()
            if not call.is_read:
                with account.change():
                    return self.carry_out(account, call, injected)
            try:
                return self.carry_out(self.seen_by(self._lagging(call, injected), caller), call, injected)
            finally:
                account.store.unmark()

    def fault_key(self, call: Any) -> str:
        """The key by which faults count calls of one method: the object that the call is about, or the list's filter."""
        return self.about(call) or call.detail

    def _reply_to(self, request: Request, body: bytes, read: Callable[[Request, bytes], Call]) -> Reply:
        try:
            call = read(request, body)
        except Refusal as unreadable:
            with self.account.lock:
                self._count(unreadable)
            return Reply(unreadable)
        return self.reply(call)

    def _count(self, refused: Refusal) -> None:
        """Remember for the status what somebody needed and did not get."""
        if refused.not_emulated:
            self.account.not_emulated[refused.not_emulated] += 1

    def _limited(self, call: Any) -> Reply:
        if self._limit.exceeded():
            return Reply(self.refusal(self.TOO_MANY_CALLS))
        account = self.account
        account.step()
        injected = account.fault_injector.next_fault(call, self.fault_key(call))
        if injected.kind == HELD:
            self._held.append((account.now + injected.seconds, call))
        if injected.prevents_call:
            return Reply(self.refusal(injected), injected)
        try:
            return Reply(self.answer(call, injected), injected)
        except Refusal as refused:
            return Reply(refused, injected)

    def _carry_out_held(self) -> None:
        """Carry out the calls whose callers were sent away, once their time has come."""
        now, waiting = self.account.now, self._held
        self._held = [(at, call) for at, call in waiting if at > now]
        for call in [call for at, call in waiting if at <= now]:
            try:
                self.answer(call)
                self._record(call, None, NO_FAULT)
            except Refusal as refused:
                self._record(call, refused, NO_FAULT)

    def _lagging(self, call: Any, injected: InjectedFault) -> EmulatedAccount:
        """The account as the call sees it: lists lag, and a stale one lags further."""
        account = self.account
        behind_s = injected.seconds if injected.kind == STALE else 0.0
        lag = max(account.settings.list_lag_s, behind_s)
        return account.with_tables(self._versions.tables_at(account.now - lag)) if lag and call.is_list else account

    def _record(self, call: Any, refused: Refusal | None, injected: InjectedFault) -> None:
        if self._history:
            self._write(
                "call",
                method=call.name,
                id=None if call.identifier is None else str(call.identifier),
                about=self.about(call),
                outcome="fault" if refused else "ok",
                code=refused.code if refused else None,
                injected=injected.kind,
            )

    def _record_events(self, changes: list[Change]) -> None:
        decode = self.account.store.decode
        for change in changes:
            before, after = (body and decode(change.kind, body) for body in (change.before, change.after))
            facts = self.facts_of(before if after is None else after)
            for name in events(before, after):
                self._write("event", event=name, what=change.kind.removesuffix("s"), id=change.id, **facts)

    def _write(self, kind: str, **facts: Any) -> None:
        """Write a line of the history; the account's lock keeps them in the order of what happened."""
        self._history.write(json.dumps({"kind": kind, "at": self.account.now, **facts}) + "\n")


def events(before: Any, after: Any) -> list[str]:
    """The events that lead from one state of a record to the next; None where it was not there."""
    if after is None:
        return ["removed"]
    names = ["made"] if before is None else []
    for name in MOMENTS:
        if getattr(after, name, None) is not None and getattr(before, name, None) is None:
            names.append(name)
    for name in STATES:
        state = getattr(after, name, None)
        if before is not None and state != getattr(before, name, None):
            names.append(state.lower())
    return names
