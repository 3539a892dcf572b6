"""A provider process, started and asked as the engine does it."""

import os
import pwd
import select
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Self

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from tests.chaos.fork_server import CONTEXT, PROVIDER, Process, fork
from tests.chaos.provider import Failed, Provider, Resource

__all__ = ["Driver", "Failed", "Resource", "relayed"]
EXECUTABLE = Path(__file__).parents[2] / "microcluster" / "accounts" / "softlayer" / "pulumi-resource-softlayer"


class Child(Process):
    """A provider that is started here, as the engine does it: with a process group of its own, and pipes at both ends."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        stdin, stdout = os.pipe(), os.pipe()
        self._child = subprocess.Popen(argv, stdin=stdin[0], stdout=stdout[1], env=environment, start_new_session=True)
        os.close(stdin[0])
        os.close(stdout[1])
        super().__init__(self._child.pid, stdin[1], stdout[0])

    def release(self) -> None:
        self._child.poll()  # An ended child stays a zombie until somebody asks.
        super().release()


class Driver(Provider):
    """One provider process, configured."""

    def __init__(
        self,
        config_file: Path | str,
        time_scale: float = 0.02,
        environment: Mapping[str, str] = {},
        started_by: tuple[str, ...] = (),
        **settings: str,
    ) -> None:
        """Start a provider; with ``started_by``, a command that starts a command, it is the executable itself."""
        # A home beside the account's own files: what one driver wrote down, the next one over the same account reads.
        home = {"MICROCLUSTER_HOME": str(Path(config_file).parent / "home")}

        def start(engine_address: str) -> Process:
            variables = {**os.environ, **home, **environment}
            if started_by:
                return Child([*started_by, str(EXECUTABLE), engine_address], variables)
            return fork(PROVIDER, [engine_address], variables, Path("/dev/stderr"))

        super().__init__(start, time_scale, configFile=str(config_file), **settings)

    def said(self) -> str:
        """Return all that it has told the engine."""
        return "\n".join(self.ears.said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()


@contextmanager
def relayed(user: str, address: str) -> Iterator[provider_pb2_grpc.ResourceProviderStub]:
    """Call the provider over a connection that is another user's."""
    ours, theirs = CONTEXT.Pipe()
    relay = CONTEXT.Process(target=_relay, args=(user, address, theirs), daemon=True)
    relay.start()
    with grpc.insecure_channel(f"127.0.0.1:{ours.recv()}") as channel:
        yield provider_pb2_grpc.ResourceProviderStub(channel)
    relay.kill()
    relay.join()


def _relay(user: str, address: str, told: Connection) -> None:
    """Become a user, and pass on what one connection sends and gets."""
    os.setgroups([])
    os.setgid(pwd.getpwnam(user).pw_gid)
    os.setuid(pwd.getpwnam(user).pw_uid)
    host, _, port = address.partition(":")
    with socket.create_server(("127.0.0.1", 0)) as server:
        told.send(server.getsockname()[1])
        near, _ = server.accept()
        far = socket.create_connection((host, int(port)))
        other = {near: far, far: near}
        while True:
            for ready in select.select(list(other), [], [])[0]:
                other[ready].sendall(ready.recv(65536))
