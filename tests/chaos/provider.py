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

from microcluster.accounts.shared.plugin_servicer import to_python, to_struct
from tests.chaos.fork_server import Process

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
        self.address = f"127.0.0.1:{int(self.process.first_line())}"
        self._channel = grpc.insecure_channel(self.address)
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self.stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=address))
        arguments = to_struct({"timeScale": str(time_scale), **settings})
        self.stub.Configure(provider_pb2.ConfigureRequest(args=arguments))

    def check(self, kind: str, name: str, old: Resource | None, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Have the inputs judged, and return those that are stored."""
        answer = self._ask("Check", kind, name, olds=old.inputs if old else {}, news=inputs)
        if answer.failures:
            raise Failed(f"{name}: {'; '.join(f'{each.property}: {each.reason}' for each in answer.failures)}")
        return to_python(answer.inputs)

    def diff(self, old: Resource, inputs: Mapping[str, Any]) -> provider_pb2.DiffResponse:
        """Have old and new inputs compared."""
        return self._ask("Diff", old.kind, old.name, id=old.id, olds=old.outputs, old_inputs=old.inputs, news=inputs)

    def create(
        self, kind: str, name: str, inputs: Mapping[str, Any], *, preview: bool = False, timeout: float = 0
    ) -> Resource:
        """Have it made."""
        answer = self._ask("Create", kind, name, properties=inputs, preview=preview, timeout=timeout)
        return Resource(kind, name, answer.id, dict(inputs), to_python(answer.properties))

    def update(self, old: Resource, inputs: Mapping[str, Any], *, preview: bool = False) -> Resource:
        """Have it finished or changed."""
        values = {"olds": old.outputs, "old_inputs": old.inputs, "news": inputs}
        answer = self._ask("Update", old.kind, old.name, id=old.id, preview=preview, **values)
        return Resource(old.kind, old.name, old.id, dict(inputs), to_python(answer.properties))

    def read(self, old: Resource) -> Resource | None:
        """Have it looked at; None when it is gone. What has neither inputs nor outputs is imported."""
        answer = self._ask("Read", old.kind, old.name, id=old.id, inputs=old.inputs, properties=old.outputs)
        if not answer.id:
            return None
        return Resource(old.kind, old.name, answer.id, to_python(answer.inputs), to_python(answer.properties))

    def delete(self, old: Resource, *, timeout: float = 0) -> None:
        """Have it removed."""
        values = {"properties": old.outputs, "old_inputs": old.inputs}
        self._ask("Delete", old.kind, old.name, id=old.id, timeout=timeout, **values)

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

    def _ask(self, method: str, kind: str, name: str, **values: Any) -> Any:
        """Call a method of the protocol; a mapping among the values goes as a struct."""
        sent = {key: to_struct(value) if isinstance(value, Mapping) else value for key, value in values.items()}
        request = getattr(provider_pb2, f"{method}Request")(**named(kind, name, self._vendor), **sent)
        try:
            return getattr(self.stub, method)(request)
        except grpc.RpcError as error:
            raise Failed(error.details(), _recorded(kind, name, error)) from None
        except ValueError as closed:  # The channel of an engine that is gone.
            raise Failed(str(closed)) from None


def named(kind: str, name: str, vendor: str = "softlayer") -> dict[str, str]:
    """Name a resource as the engine does."""
    token = f"{vendor}:index:{kind}"
    return {"urn": f"urn:pulumi:{STACK}::microcluster::{token}::{name}", "type": token, "name": name}


def _recorded(kind: str, name: str, error: Any) -> Resource | None:
    """Read what a partial failure wants to have in the state."""
    for key, value in error.trailing_metadata() or ():
        failed = provider_pb2.ErrorResourceInitFailed()
        if key == "grpc-status-details-bin" and status_pb2.Status.FromString(value).details[0].Unpack(failed):
            inputs, outputs = to_python(failed.inputs), to_python(failed.properties)
            return Resource(kind, name, failed.id, inputs, outputs, list(failed.reasons))
    return None
