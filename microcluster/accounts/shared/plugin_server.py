"""Starts the provider: prints its port, serves the engine, and leaves when the engine does."""

import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2_grpc

from microcluster.accounts.shared.plugin_servicer import Provider, Vendor

LOOPBACK = "127.0.0.1"
WORKERS = 256
"""Threads for calls, more than resources created at once: a waiting create holds one, Check and Cancel need a free one."""
LOOK_EVERY_S = 0.5
ENDING = {signal.SIGINT, signal.SIGTERM}
SOCK_DIAG, BY_FAMILY, REQUEST, ANY = 4, 20, 1, 0xFFFFFFFF
"""Netlink's protocol of socket diagnostics, its request by family, the flag of a request, and "no cookie" (linux/inet_diag.h)."""
ESTABLISHED = 1
QUESTION = struct.Struct("=IHHII BBBxI 4s4s12s4s12s III")
"""A message's head, inet_diag_req_v2, and in it the addresses of both ends."""
ANSWER = struct.Struct("=4xH10x xB 62x II")
"""A message's kind and, of inet_diag_msg, the state, the user and the inode of a socket."""
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


class OneUser(grpc.ServerInterceptor):
    """Refuses calls of other users of this computer, to all of whom a port of the loopback is open."""

    port = 0

    def intercept_service(self, continuation: Callable[..., Any], details: grpc.HandlerCallDetails) -> Any:
        """Look for the caller before each call, as another may have taken over the port of one that has gone."""
        handler = continuation(details)

        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            user = user_of(context.peer(), self.port)
            if user not in (0, os.geteuid()):
                why = (
                    "this kernel does not say who calls (inet_diag)"
                    if user is None
                    else "only the user who started it may"
                )
                context.abort(grpc.StatusCode.PERMISSION_DENIED, f"calling {details.method}: {why}.")
            return handler.unary_unary(request, context)

        if not (handler and handler.unary_unary):  # The protocol's one call with a stream is not served.
            return None
        return grpc.unary_unary_rpc_method_handler(answer, handler.request_deserializer, handler.response_serializer)


def user_of(peer: str, port: int) -> int | None:
    """Return the user at the other end of a connection to our port; None where the kernel knows none.

    Of a socket that was closed the kernel says user 0 and inode 0: only a living one counts.
    """
    address, _, end = peer.removeprefix("ipv4:").partition(":")
    if address != LOOPBACK:
        return None
    ports, ip = struct.pack("!HH", int(end), port), socket.inet_aton(LOOPBACK)
    head = (QUESTION.size, BY_FAMILY, REQUEST, 0, 0, socket.AF_INET, socket.IPPROTO_TCP, 0, ANY)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
            kernel.send(QUESTION.pack(*head, ports, ip, b"", ip, b"", 0, ANY, ANY))
            kind, state, user, inode = ANSWER.unpack_from(kernel.recv(4096).ljust(ANSWER.size, b"\0"))
    except OSError:
        return None
    return user if kind == BY_FAMILY and state == ESTABLISHED and inode else None


def main(arguments: list[str], vendor: Vendor) -> int:
    """Serve until the engine is gone or says so."""
    # Blocked before any thread starts, and waited for: a handler that sets an Event can meet its lock held, for ever.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    parent = ParentWatch()
    address = arguments[-1] if arguments and not arguments[-1].startswith("-") else ""
    provider = Provider(vendor, address, parent.is_over)
    caller = OneUser()
    server = grpc.server(ThreadPoolExecutor(WORKERS), interceptors=[caller], options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    caller.port = server.add_insecure_port(f"{LOOPBACK}:0")
    server.start()
    print(caller.port, flush=True)

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
