"""Starts the provider: prints its port, serves the engine, and leaves when the engine does."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2_grpc

from providers.softlayer.servicer import Provider
from providers.softlayer.session import EngineLife

WORKERS = 256
"""More than resources created at once: a waiting create holds one, and Check and Cancel need a free one."""
LOOK_EVERY_S = 0.5
GRACE_S = 4.0
"""The engine kills five seconds after it asks; running operations write down what they know before that."""


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    life = EngineLife()
    provider = Provider(arguments[-1] if arguments and not arguments[-1].startswith("-") else "", life)
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)

    over = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: over.set())
    threading.Thread(target=_watch_stdin, args=(life, over), daemon=True).start()
    while not over.wait(LOOK_EVERY_S):
        if life.is_over():
            break
    provider.stop.set()
    server.stop(GRACE_S).wait()
    # Threads in a lost call must not keep an orphaned provider alive beyond the grace.
    sys.stdout.flush()
    os._exit(0)


def _watch_stdin(life: EngineLife, over: threading.Event) -> None:
    """The engine holds the other end of stdin: its end is the engine's end."""
    while os.read(0, 4096):
        pass
    life.gone.set()
    over.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
