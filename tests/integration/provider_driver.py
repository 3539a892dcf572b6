"""Drives the provider's executable as the engine does: over gRPC, with stdin as its sign of life."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2, provider_pb2_grpc, status_pb2

from providers.softlayer.values import to_python, to_struct

EXECUTABLE = Path(__file__).parents[2] / "providers" / "pulumi-resource-softlayer"


@dataclass
class Failed(Exception):
    """The provider refused; ``unfinished`` is what it recorded all the same."""

    message: str
    unfinished: provider_pb2.ErrorResourceInitFailed | None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Made:
    """A resource as the state would hold it."""

    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]


class Engine(engine_pb2_grpc.EngineServicer):
    """Collects what the provider says."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def Log(self, request: Any, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self.said.append(request)
        return empty_pb2.Empty()


class Driver:
    """One provider process, configured."""

    def __init__(
        self,
        config_file: Path | str,
        time_scale: float = 0.02,
        environment: Mapping[str, str] = {},
        started_by: tuple[str, ...] = (),
        **settings: str,
    ) -> None:
        self.time_scale = time_scale
        self.engine = Engine()
        self._engine_server = grpc.server(ThreadPoolExecutor(8))
        engine_pb2_grpc.add_EngineServicer_to_server(self.engine, self._engine_server)
        port = self._engine_server.add_insecure_port("127.0.0.1:0")
        self._engine_server.start()
        self.process = subprocess.Popen(
            [*started_by, str(EXECUTABLE), f"127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A home beside the account's own files: what one driver wrote down, the next one over the same account reads.
            env={**os.environ, "MICROCLUSTER_HOME": str(Path(config_file).parent / "home"), **environment},
            start_new_session=True,
        )
        self._channel = grpc.insecure_channel(f"127.0.0.1:{int(self.process.stdout.readline())}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self._channel)
        self.stub.Handshake(provider_pb2.ProviderHandshakeRequest(engine_address=f"127.0.0.1:{port}"))
        settings = to_struct({"configFile": str(config_file), "timeScale": str(time_scale), **settings})
        self.stub.Configure(provider_pb2.ConfigureRequest(args=settings))

    def create(
        self, kind: str, name: str, inputs: Mapping[str, Any], *, preview: bool = False, timeout: float = 0
    ) -> Made:
        """Create, and return what the state would record."""
        request = provider_pb2.CreateRequest(
            urn=urn(kind, name),
            type=token(kind),
            name=name,
            properties=to_struct(inputs),
            preview=preview,
            timeout=timeout,
        )
        answer = _answered(self.stub.Create, request)
        return Made(answer.id, dict(inputs), to_python(answer.properties))

    def update(self, kind: str, name: str, made: Made, inputs: Mapping[str, Any], *, timeout: float = 0) -> Made:
        """Update, and return what the state would record."""
        request = provider_pb2.UpdateRequest(
            urn=urn(kind, name),
            type=token(kind),
            id=made.id,
            olds=to_struct(made.outputs),
            old_inputs=to_struct(made.inputs),
            news=to_struct(inputs),
            timeout=timeout,
        )
        answer = _answered(self.stub.Update, request)
        return Made(made.id, dict(inputs), to_python(answer.properties))

    def read(self, kind: str, name: str, made: Made) -> Made:
        """Read; an empty id means gone, empty inputs are an import."""
        request = provider_pb2.ReadRequest(
            urn=urn(kind, name),
            type=token(kind),
            id=made.id,
            inputs=to_struct(made.inputs),
            properties=to_struct(made.outputs),
        )
        answer = _answered(self.stub.Read, request)
        return Made(answer.id, to_python(answer.inputs), to_python(answer.properties))

    def delete(self, kind: str, name: str, made: Made, *, timeout: float = 0) -> None:
        """Delete."""
        request = provider_pb2.DeleteRequest(
            urn=urn(kind, name),
            type=token(kind),
            id=made.id,
            properties=to_struct(made.outputs),
            old_inputs=to_struct(made.inputs),
            timeout=timeout,
        )
        _answered(self.stub.Delete, request)

    def cancel(self) -> None:
        """Ask the provider to stop waiting."""
        self.stub.Cancel(empty_pb2.Empty())

    def said(self) -> str:
        """All that the provider told the engine."""
        return "\n".join(request.message for request in self.engine.said)

    def drop_channel(self) -> None:
        """Break the connection as an engine does that is gone."""
        self._channel.close()

    def kill(self) -> None:
        """End the provider as a crash would."""
        self.process.kill()
        self.process.wait(10)

    def close(self) -> None:
        """Leave as the engine leaves."""
        self._channel.close()
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(10)
        self._engine_server.stop(None)

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def unfinished(failed: Failed, inputs: Mapping[str, Any]) -> Made:
    """Read what a partial failure recorded."""
    assert failed.unfinished is not None, failed.message
    return Made(failed.unfinished.id, dict(inputs), to_python(failed.unfinished.properties))


def urn(kind: str, name: str) -> str:
    """Name a resource as the engine does."""
    return f"urn:pulumi:test::microcluster::{token(kind)}::{name}"


def token(kind: str) -> str:
    """Name a type as the engine does."""
    return f"softlayer:index:{kind}"


def struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """Write values as the engine sends them, nulls included."""
    wire = struct_pb2.Struct()
    wire.update(dict(values))
    return wire


def _answered(method: Any, request: Any) -> Any:
    try:
        return method(request)
    except grpc.RpcError as error:
        raise Failed(error.details(), _detail(error)) from None


def _detail(error: Any) -> provider_pb2.ErrorResourceInitFailed | None:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status = status_pb2.Status.FromString(value)
            failed = provider_pb2.ErrorResourceInitFailed()
            assert status.details[0].Unpack(failed)
            return failed
    return None
