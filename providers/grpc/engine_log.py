"""What a person sees while an operation runs: the engine's log, under the resource it is about."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

from microcluster.plain_text import lines

LOG_TIMEOUT_S = 5.0


class EngineLog:
    """The engine's Log call; a log that cannot be delivered never fails an operation."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address, options=_GRPC_CHANNEL_OPTIONS) if address else None

    def say(self, urn: str, message: str, severity: int = engine_pb2.INFO, *, passing: bool = False) -> None:
        """Show a message; a ``passing`` one stands beside the resource only until the next."""
        if self._channel is None:
            return
        request = engine_pb2.LogRequest(severity=severity, message=lines(message), urn=urn, ephemeral=passing)
        try:
            engine_pb2_grpc.EngineStub(self._channel).Log(request, timeout=LOG_TIMEOUT_S)
        except grpc.RpcError:
            return  # The engine is gone or busy; the operation's own result matters more than its progress.

    def close(self) -> None:
        """Let go of the engine."""
        if self._channel is not None:
            self._channel.close()


@dataclass(frozen=True)
class Log:
    """The engine's log for one resource."""

    engine: EngineLog
    urn: str

    def info(self, message: str) -> None:
        """Keep a message under the resource in the command's summary."""
        self.engine.say(self.urn, message)

    def progress(self, message: str) -> None:
        """Show what is going on right now."""
        self.engine.say(self.urn, message, passing=True)

    def warn(self, message: str) -> None:
        """Show a warning."""
        self.engine.say(self.urn, message, engine_pb2.WARNING)
