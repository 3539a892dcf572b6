"""Every call on its way in and out: the rate limit, the clock, the weather over it, and its line in the history."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from emulator.rate_limit import RateLimit
from emulator.softlayer.account import Account
from emulator.softlayer.calls import SERVICE_PREFIX, Answer, Call
from emulator.softlayer.dispatch import Dispatcher
from emulator.softlayer.fault_injection import FAIR, Weather
from emulator.softlayer.fault_key import subject
from emulator.softlayer.faults import METHOD_NOT_FOUND, Fault, rate_limited
from emulator.softlayer.history import History
from emulator.softlayer.response_faults import bared, fault_of

LOG = logging.getLogger("emulator.softlayer.calls")


@dataclass(frozen=True)
class Reply:
    """What became of a call, and the weather in which its answer travels."""

    result: Answer | Fault
    weather: Weather = FAIR


class Reception:
    """Takes calls one at a time."""

    def __init__(self, account: Account, history: History | None = None) -> None:
        self.account = account
        self._dispatcher = Dispatcher(account)
        self._history = history
        self._limit = RateLimit(account.settings.calls_per_second)
        if history:
            account.store.watchers.append(history.changed)

    def reply(self, call: Call) -> Reply:
        """Carry a call out, unless the limit or the weather forbids it, and write down what became of it."""
        if not call.service.startswith(SERVICE_PREFIX):
            call = replace(call, service=SERVICE_PREFIX + call.service)
        with self.account.lock:
            reply = self._received(call)
            fault = reply.result if isinstance(reply.result, Fault) else None
            if fault:
                LOG.info("%s(%s): %s %s", call.name, call.identifier or "", fault.code, fault.text)
            if fault and fault.code == METHOD_NOT_FOUND:
                self.account.not_emulated[call.name] += 1
            if self._history:
                self._history.call(call, fault, reply.weather.kind)
            return reply

    def _received(self, call: Call) -> Reply:
        if self._limit.exceeded():
            return Reply(rate_limited())
        account = self.account
        account.step()
        weather = account.sky.over(call, subject(account, call))
        if weather.strikes_first:
            return Reply(fault_of(weather, account.settings.capacity_code), weather)
        behind_s = weather.seconds if weather.kind == "stale" else 0.0
        try:
            answer = self._dispatcher.answer(call, behind_s)
            return Reply(bared(answer) if weather.kind == "bare_receipt" else answer, weather)
        except Fault as fault:
            return Reply(fault, weather)
