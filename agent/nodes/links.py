"""Measure how fast one node sends to another over plain sockets, and prove that other nodes reach a port of this one.

``receive ADDRESS PORT STREAMS`` takes in and throws away; ``send ADDRESS PORT STREAMS`` sends for a while and prints the megabits per second
that had arrived when the other side closed. ``connect ADDRESS PORT`` only makes a connection.
"""

import socket
import sys
import threading
import time
from typing import List

CHUNK = b"\0" * (1 << 18)
SEND_S = 2.0
CONNECT_TIMEOUT_S = 15
QUIET_TIMEOUT_S = 20


def listening(address: str, port: int, count: int, timeout_s: float) -> socket.socket:
    """Return a socket that takes so many connections, each within a time."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(count)
    listener.settimeout(timeout_s)
    return listener


def receive(address: str, port: int, streams: int) -> None:
    with listening(address, port, streams, QUIET_TIMEOUT_S) as listener:
        threads = []
        for _ in range(streams):
            threads.append(threading.Thread(target=drain, args=(listener.accept()[0],)))
            threads[-1].start()
        for thread in threads:
            thread.join()


def drain(connection: socket.socket) -> None:
    with connection:
        connection.settimeout(QUIET_TIMEOUT_S)
        while connection.recv(1 << 18):
            pass


def send(address: str, port: int, streams: int) -> None:
    connections = [connected(address, port) for _ in range(streams)]
    sent, began = [], time.monotonic()
    threads = [threading.Thread(target=pour, args=(one, began + SEND_S, sent)) for one in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(round(sum(sent) * 8 / (time.monotonic() - began) / 1e6, 1))


def connected(address: str, port: int, timeout_s: float = CONNECT_TIMEOUT_S) -> socket.socket:
    """Connect as soon as the other side listens."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return socket.create_connection((address, port), timeout_s)
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def pour(connection: socket.socket, until: float, sent: List[int]) -> None:
    """Send until the time is over, then wait for the other side's end: what lies in buffers has not arrived."""
    count = 0
    with connection:
        while time.monotonic() < until:
            connection.sendall(CHUNK)
            count += len(CHUNK)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    sent.append(count)


def connect(address: str, port: int) -> None:
    connected(address, port).close()


VERBS = {"receive": receive, "send": send, "connect": connect}


def main(verb: str, address: str, *numbers: str) -> None:
    try:
        VERBS[verb](address, *map(int, numbers))
    except OSError as error:
        sys.exit(str(error))
