"""What surrounds every call: the rate limit, the clock, fault injection, and the line in the history."""

import logging
from dataclasses import dataclass, replace

from emulator.fault_injection import HELD, NO_FAULT, InjectedFault
from emulator.history import History
from emulator.rate_limit import RateLimit
from emulator.softlayer.account import Account
from emulator.softlayer.calls import SERVICE_PREFIX, Answer, Call
from emulator.softlayer.dispatch import Dispatcher
from emulator.softlayer.fault_key import about, fault_key
from emulator.softlayer.faults import METHOD_NOT_FOUND, Fault, rate_limited
from emulator.softlayer.response_faults import refusal, without_guests

LOG = logging.getLogger("emulator.softlayer.calls")


@dataclass(frozen=True)
class Reply:
    """What became of a call, and the fault with which its answer is sent."""

    result: Answer | Fault
    injected: InjectedFault = NO_FAULT


class Middleware:
    """Answers calls one at a time."""

    def __init__(self, account: Account, history: History | None = None) -> None:
        self.account = account
        self._dispatcher = Dispatcher(account)
        self._history = history
        self._limit = RateLimit(account.settings.calls_per_second)
        self._held: list[tuple[float, Call]] = []

    def reply(self, call: Call) -> Reply:
        """Carry out a call unless the rate limit or a fault prevents it, and record the outcome."""
        if not call.service.startswith(SERVICE_PREFIX):
            call = replace(call, service=SERVICE_PREFIX + call.service)
        with self.account.lock:
            self._carry_out_held()
            reply = self._limited(call)
            fault = reply.result if isinstance(reply.result, Fault) else None
            if fault:
                LOG.info("%s(%s): %s %s", call.name, call.identifier or "", fault.code, fault.text)
            if fault and fault.code == METHOD_NOT_FOUND:
                self.account.not_emulated[call.name] += 1
            self._record(call, fault, reply.injected)
            return reply

    def _limited(self, call: Call) -> Reply:
        if self._limit.exceeded():
            return Reply(rate_limited())
        account = self.account
        account.step()
        injected = account.fault_injector.next_fault(call, fault_key(account, call))
        if injected.kind == HELD:
            self._held.append((account.now + injected.seconds, call))
        if injected.prevents_call:
            return Reply(refusal(injected, account.settings.capacity_code), injected)
        behind_s = injected.seconds if injected.kind == "stale" else 0.0
        try:
            answer = self._dispatcher.answer(call, behind_s)
            return Reply(without_guests(answer) if injected.kind == "bare_receipt" else answer, injected)
        except Fault as fault:
            return Reply(fault, injected)

    def _carry_out_held(self) -> None:
        """Carry out the calls whose callers were sent away, once their time has come."""
        now = self.account.now
        due, self._held = [call for at, call in self._held if at <= now], [each for each in self._held if each[0] > now]
        for call in due:
            try:
                self._dispatcher.answer(call)
                self._record(call, None, NO_FAULT)
            except Fault as fault:
                self._record(call, fault, NO_FAULT)

    def _record(self, call: Call, fault: Fault | None, injected: InjectedFault) -> None:
        if self._history:
            self._history.call(
                service=call.service,
                method=call.method,
                id=None if call.identifier is None else str(call.identifier),
                about=about(self.account, call),
                outcome="fault" if fault else "ok",
                code=fault.code if fault else None,
                injected=injected.kind,
            )
