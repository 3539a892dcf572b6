"""Prove that other nodes reach a port of this one.

``listen ADDRESS PORT COUNT`` takes that many connections; ``connect ADDRESS PORT`` makes one. Both end with 1 and a word where it does not succeed.
"""

import socket
import sys
import time

TIMEOUT_S = 10


def listen(address, port, count):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
        listener.listen(int(count))
        listener.settimeout(TIMEOUT_S)
        for _ in range(int(count)):
            listener.accept()[0].close()


def connect(address, port):
    """Connect as soon as the other side listens."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            socket.create_connection((address, int(port)), TIMEOUT_S).close()
            return
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def main(verb, *words):
    try:
        {"listen": listen, "connect": connect}[verb](*words)
    except OSError as error:
        sys.exit(str(error))
