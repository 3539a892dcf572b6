"""Starts the provider: prints its port, serves the engine, and leaves when the engine does."""

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2_grpc

from providers.grpc.servicer import Provider, Vendor

WORKERS = 256
"""More than resources created at once: a waiting create holds one, and Check and Cancel need a free one."""
LOOK_EVERY_S = 0.5
ENDING = {signal.SIGINT, signal.SIGTERM}
GRACE_S = 4.0
"""The engine kills five seconds after it asks; running operations write down what they know before that."""


class ParentWatch:
    """Knows whether the engine that started us still lives."""

    def __init__(self) -> None:
        self.gone = threading.Event()
        self._parent = os.getppid()

    def is_over(self) -> bool:
        """Look at every sign: the end of stdin, and another parent process."""
        return self.gone.is_set() or os.getppid() != self._parent


def main(arguments: list[str], vendor: Vendor) -> int:
    """Serve until the engine is gone or says so."""
    # Blocked before any thread starts, and waited for: a handler that sets an Event can meet its lock held, for ever.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    parent = ParentWatch()
    address = arguments[-1] if arguments and not arguments[-1].startswith("-") else ""
    provider = Provider(vendor, address, parent.is_over)
    server = grpc.server(ThreadPoolExecutor(WORKERS), options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)

    asked = threading.Event()
    threading.Thread(target=_watch_stdin, args=(parent,), daemon=True).start()
    threading.Thread(target=_watch_signals, args=(asked,), daemon=True).start()
    while not parent.is_over() and not asked.wait(LOOK_EVERY_S):
        pass
    provider.stop.set()
    server.stop(GRACE_S).wait()
    # Threads in a lost call must not keep an orphaned provider alive beyond the grace.
    sys.stdout.flush()
    os._exit(0)


def _watch_signals(asked: threading.Event) -> None:
    # Not sigtimedwait: after a stop that was longer than its timeout it returns as if a signal had come.
    signal.sigwait(ENDING)
    asked.set()


def _watch_stdin(parent: ParentWatch) -> None:
    """The engine holds the other end of stdin: its end is the engine's end."""
    while os.read(0, 4096):
        pass
    parent.gone.set()
