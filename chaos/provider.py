"""One provider process with its gRPC end: started, configured, asked and left as the engine does it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from chaos.process import Process
from chaos.program import STACK
from chaos.state import Resource
from chaos.zygote import Zygote
from providers.softlayer.values import to_python, to_struct

CANCEL_BUDGET_S = 5
KILL_AFTER_S = 5


class Failed(Exception):
    """The provider refused; ``unfinished`` is what it recorded all the same."""

    def __init__(self, message: str, unfinished: provider_pb2.ErrorResourceInitFailed | None = None) -> None:
        super().__init__(message)
        self.unfinished = unfinished


class Ears(engine_pb2_grpc.EngineServicer):
    """Hears what the provider says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def Log(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        if not request.ephemeral:
            self.said.append(request.message)
        return empty_pb2.Empty()


@dataclass(frozen=True)
class Setting:
    """What a provider is started with."""

    config_file: Path
    time_scale: float
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the user who starts it."""
        return {"MICROCLUSTER_HOME": str(self.home), "HOME": str(self.home), "NO_PROXY": "127.0.0.1"}


class Provider:
    """A provider process under this engine."""

    def __init__(self, zygote: Zygote, setting: Setting) -> None:
        self.ears = Ears()
        self._engine = grpc.server(ThreadPoolExecutor(4))
        engine_pb2_grpc.add_EngineServicer_to_server(self.ears, self._engine)
        address = f"127.0.0.1:{self._engine.add_insecure_port('127.0.0.1:0')}"
        self._engine.start()
        self.process: Process = zygote.fork([address], setting.environment, setting.home / "provider.log")
        self._channel = grpc.insecure_channel(f"127.0.0.1:{int(self.process.first_line())}")
        self._stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self._stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=address))
        settings = to_struct({"configFile": str(setting.config_file), "timeScale": str(setting.time_scale)})
        self._stub.Configure(provider_pb2.ConfigureRequest(args=settings))

    def check(self, kind: str, name: str, old: Resource | None, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Have the inputs judged, and return those that are stored."""
        olds = to_struct(old.inputs if old else {})
        request = provider_pb2.CheckRequest(**_named(kind, name), olds=olds, news=to_struct(inputs))
        answer = _answered(self._stub.Check, request)
        if answer.failures:
            raise Failed(f"{name}: {'; '.join(f'{each.property}: {each.reason}' for each in answer.failures)}")
        return to_python(answer.inputs)

    def diff(self, old: Resource, inputs: Mapping[str, Any]) -> provider_pb2.DiffResponse:
        """Have old and new inputs compared."""
        request = provider_pb2.DiffRequest(
            **_named(old.kind, old.name),
            id=old.id,
            olds=to_struct(old.outputs),
            old_inputs=to_struct(old.inputs),
            news=to_struct(inputs),
        )
        return _answered(self._stub.Diff, request)

    def create(self, kind: str, name: str, inputs: Mapping[str, Any]) -> Resource:
        """Have it made."""
        request = provider_pb2.CreateRequest(**_named(kind, name), properties=to_struct(inputs))
        answer = _answered(self._stub.Create, request)
        return Resource(kind, name, answer.id, dict(inputs), to_python(answer.properties))

    def update(self, old: Resource, inputs: Mapping[str, Any]) -> Resource:
        """Have it finished or changed."""
        request = provider_pb2.UpdateRequest(
            **_named(old.kind, old.name),
            id=old.id,
            olds=to_struct(old.outputs),
            old_inputs=to_struct(old.inputs),
            news=to_struct(inputs),
        )
        answer = _answered(self._stub.Update, request)
        return Resource(old.kind, old.name, old.id, dict(inputs), to_python(answer.properties))

    def read(self, old: Resource) -> Resource | None:
        """Have it looked at; None when it is gone."""
        request = provider_pb2.ReadRequest(
            **_named(old.kind, old.name), id=old.id, inputs=to_struct(old.inputs), properties=to_struct(old.outputs)
        )
        answer = _answered(self._stub.Read, request)
        if not answer.id:
            return None
        return Resource(old.kind, old.name, answer.id, to_python(answer.inputs), to_python(answer.properties))

    def delete(self, old: Resource) -> None:
        """Have it removed."""
        request = provider_pb2.DeleteRequest(
            **_named(old.kind, old.name), id=old.id, properties=to_struct(old.outputs), old_inputs=to_struct(old.inputs)
        )
        _answered(self._stub.Delete, request)

    def cancel(self) -> None:
        """Ask it to stop waiting."""
        with contextlib.suppress(grpc.RpcError, ValueError):
            self._stub.Cancel(empty_pb2.Empty(), timeout=CANCEL_BUDGET_S)

    def vanish(self) -> None:
        """Go as a killed engine goes: the pipe and the connection end, nobody says anything."""
        self.process.close_stdin()
        self._channel.close()
        self._engine.stop(None)

    def leave(self) -> None:
        """Go as the engine goes at the end of every command."""
        self.cancel()
        self._channel.close()
        self.process.signal(signal.SIGINT)
        if not self.process.ended(KILL_AFTER_S):
            self.process.signal(signal.SIGKILL)
            self.process.ended(KILL_AFTER_S)
        self._engine.stop(None)
        self.process.release()


def _named(kind: str, name: str) -> dict[str, str]:
    token = f"softlayer:index:{kind}"
    return {"urn": f"urn:pulumi:{STACK}::microcluster::{token}::{name}", "type": token, "name": name}


def _answered(method: Any, request: Any) -> Any:
    try:
        return method(request)
    except grpc.RpcError as error:
        raise Failed(error.details(), _detail(error)) from None
    except ValueError as closed:  # The channel of an engine that is gone.
        raise Failed(str(closed)) from None


def _detail(error: Any) -> provider_pb2.ErrorResourceInitFailed | None:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            failed = provider_pb2.ErrorResourceInitFailed()
            if status_pb2.Status.FromString(value).details[0].Unpack(failed):
                return failed
    return None
