"""What surrounds every call: the rate limit, the clock, fault injection, and the line in the history."""

import logging
from dataclasses import dataclass
from typing import Any

from emulator.fault_injection import NO_FAULT, InjectedFault
from emulator.history import History
from emulator.paperspace.account import Account
from emulator.paperspace.dispatch import Dispatcher
from emulator.paperspace.errors import ApiError, NotEmulated
from emulator.paperspace.fault_key import about, fault_key
from emulator.paperspace.operations import Call
from emulator.paperspace.response_faults import refusal, too_many_requests
from emulator.rate_limit import RateLimit

LOG = logging.getLogger("emulator.paperspace.calls")


@dataclass(frozen=True)
class Reply:
    """What became of a call, and the fault with which its answer is sent."""

    result: Any
    injected: InjectedFault = NO_FAULT


class Middleware:
    """Answers calls one at a time."""

    def __init__(self, account: Account, history: History | None = None) -> None:
        self.account = account
        self._dispatcher = Dispatcher(account)
        self._history = history
        self._limit = RateLimit(account.settings.calls_per_second)

    def reply(self, call: Call) -> Reply:
        """Carry out a call unless the rate limit or a fault prevents it, and record the outcome."""
        with self.account.lock:
            reply = self._limited(call)
            refused = reply.result if isinstance(reply.result, ApiError) else None
            if refused:
                LOG.info("%s(%s): %s", call.name, ", ".join(call.path.values()), refused)
            if isinstance(refused, NotEmulated):
                self.count_not_emulated(refused)
            self._record(call, refused, reply.injected)
            return reply

    def count_not_emulated(self, refused: NotEmulated) -> None:
        """Remember for the status what somebody needed and did not get."""
        self.account.not_emulated[refused.what] += 1

    def _limited(self, call: Call) -> Reply:
        if self._limit.exceeded():
            return Reply(too_many_requests())
        account = self.account
        account.step()
        injected = account.fault_injector.next_fault(call, fault_key(account, call))
        if injected.prevents_call:
            return Reply(refusal(injected, account.settings), injected)
        try:
            return Reply(self._dispatcher.answer(call, injected), injected)
        except ApiError as refused:
            return Reply(refused, injected)

    def _record(self, call: Call, refused: ApiError | None, injected: InjectedFault) -> None:
        if self._history:
            self._history.call(
                method=call.name,
                id=next(iter(call.path.values()), None),
                about=about(self.account, call),
                outcome="fault" if refused else "ok",
                code=refused.code if refused else None,
                injected=injected.kind,
            )
