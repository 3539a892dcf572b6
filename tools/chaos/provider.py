"""One provider process with its gRPC end: started, configured, asked and left as the engine does it."""

import contextlib
import signal
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from providers.grpc.servicer import to_python, to_struct
from tools.chaos.fork_server import Process

STACK = "test"
CANCEL_BUDGET_S = 5
KILL_AFTER_S = 5


@dataclass(frozen=True)
class Resource:
    """A resource as the state holds it."""

    kind: str
    name: str
    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    init_errors: list[str] = field(default_factory=list)


class Failed(Exception):
    """The provider refused; ``unfinished`` is what it recorded all the same."""

    def __init__(self, message: str, unfinished: Resource | None = None) -> None:
        super().__init__(message)
        self.unfinished = unfinished


class Ears(engine_pb2_grpc.EngineServicer):
    """Hears what the provider says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def Log(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self.said.append(request.message)
        return empty_pb2.Empty()


class Provider:
    """A provider process under this engine."""

    def __init__(
        self, start: Callable[[str], Process], time_scale: float, vendor: str = "softlayer", **settings: str
    ) -> None:
        """Start and configure it.

        Args:
            start: starts the process, given the engine's address.
        """
        self.time_scale, self._vendor = time_scale, vendor
        self.ears = Ears()
        self._engine = grpc.server(ThreadPoolExecutor(8))
        engine_pb2_grpc.add_EngineServicer_to_server(self.ears, self._engine)
        address = f"127.0.0.1:{self._engine.add_insecure_port('127.0.0.1:0')}"
        self._engine.start()
        self.process = start(address)
        self._channel = grpc.insecure_channel(f"127.0.0.1:{int(self.process.first_line())}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self.stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=address))
        arguments = to_struct({"timeScale": str(time_scale), **settings})
        self.stub.Configure(provider_pb2.ConfigureRequest(args=arguments))

    def check(self, kind: str, name: str, old: Resource | None, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Have the inputs judged, and return those that are stored."""
        olds, news = to_struct(old.inputs if old else {}), to_struct(inputs)
        request = provider_pb2.CheckRequest(**named(kind, name, self._vendor), olds=olds, news=news)
        answer = _answered(self.stub.Check, request)
        if answer.failures:
            raise Failed(f"{name}: {'; '.join(f'{each.property}: {each.reason}' for each in answer.failures)}")
        return to_python(answer.inputs)

    def diff(self, old: Resource, inputs: Mapping[str, Any]) -> provider_pb2.DiffResponse:
        """Have old and new inputs compared."""
        request = provider_pb2.DiffRequest(**self._compared(old, inputs))
        return _answered(self.stub.Diff, request)

    def create(
        self, kind: str, name: str, inputs: Mapping[str, Any], *, preview: bool = False, timeout: float = 0
    ) -> Resource:
        """Have it made."""
        words = named(kind, name, self._vendor)
        request = provider_pb2.CreateRequest(**words, properties=to_struct(inputs), preview=preview, timeout=timeout)
        answer = _answered(self.stub.Create, request)
        return Resource(kind, name, answer.id, dict(inputs), to_python(answer.properties))

    def update(
        self, old: Resource, inputs: Mapping[str, Any], *, preview: bool = False, timeout: float = 0
    ) -> Resource:
        """Have it finished or changed."""
        request = provider_pb2.UpdateRequest(**self._compared(old, inputs), preview=preview, timeout=timeout)
        answer = _answered(self.stub.Update, request)
        return Resource(old.kind, old.name, old.id, dict(inputs), to_python(answer.properties))

    def read(self, old: Resource) -> Resource | None:
        """Have it looked at; None when it is gone. What has neither inputs nor outputs is imported."""
        inputs, outputs = to_struct(old.inputs), to_struct(old.outputs)
        answer = _answered(
            self.stub.Read, provider_pb2.ReadRequest(**self._known(old), inputs=inputs, properties=outputs)
        )
        if not answer.id:
            return None
        return Resource(old.kind, old.name, answer.id, to_python(answer.inputs), to_python(answer.properties))

    def delete(self, old: Resource, *, timeout: float = 0) -> None:
        """Have it removed."""
        inputs, outputs = to_struct(old.inputs), to_struct(old.outputs)
        request = provider_pb2.DeleteRequest(**self._known(old), properties=outputs, old_inputs=inputs, timeout=timeout)
        _answered(self.stub.Delete, request)

    def cancel(self) -> None:
        """Ask it to stop waiting."""
        with contextlib.suppress(grpc.RpcError, ValueError):
            self.stub.Cancel(empty_pb2.Empty(), timeout=CANCEL_BUDGET_S)

    def hang_up(self) -> None:
        """Break the connection."""
        self._channel.close()

    def vanish(self) -> None:
        """Go as a killed engine goes: the pipe and the connection end, nobody says anything."""
        self.process.close_stdin()
        self.hang_up()
        self._engine.stop(None)

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.signal(signal.SIGKILL)
        self.process.ended(KILL_AFTER_S)

    def leave(self) -> None:
        """Go as the engine goes at the end of every command."""
        self.cancel()
        self.hang_up()
        self.process.signal(signal.SIGINT)
        if not self.process.ended(KILL_AFTER_S):
            self.kill()
        self._engine.stop(None)
        self.process.release()

    def _known(self, old: Resource) -> dict[str, Any]:
        return {**named(old.kind, old.name, self._vendor), "id": old.id}

    def _compared(self, old: Resource, inputs: Mapping[str, Any]) -> dict[str, Any]:
        values = {"olds": to_struct(old.outputs), "old_inputs": to_struct(old.inputs), "news": to_struct(inputs)}
        return {**self._known(old), **values}


def named(kind: str, name: str, vendor: str = "softlayer") -> dict[str, str]:
    """Name a resource as the engine does."""
    token = f"{vendor}:index:{kind}"
    return {"urn": f"urn:pulumi:{STACK}::microcluster::{token}::{name}", "type": token, "name": name}


def _answered(method: Any, request: Any) -> Any:
    try:
        return method(request)
    except grpc.RpcError as error:
        raise Failed(error.details(), _recorded(request, error)) from None
    except ValueError as closed:  # The channel of an engine that is gone.
        raise Failed(str(closed)) from None


def _recorded(request: Any, error: Any) -> Resource | None:
    """Read what a partial failure wants to have in the state."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            failed = provider_pb2.ErrorResourceInitFailed()
            if status_pb2.Status.FromString(value).details[0].Unpack(failed):
                kind = request.type.rpartition(":")[2]
                inputs, outputs = to_python(failed.inputs), to_python(failed.properties)
                return Resource(kind, request.name, failed.id, inputs, outputs, list(failed.reasons))
    return None
