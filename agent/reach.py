"""Prove that other nodes reach a port of this one.

``listen ADDRESS PORT COUNT`` takes that many connections; ``connect ADDRESS PORT`` makes one. Both end with 1 and a word where it does not succeed.
"""

import socket
import sys

from agent.bandwidth import connected

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
    connected(address, int(port), TIMEOUT_S).close()


def main(verb, *words):
    try:
        {"listen": listen, "connect": connect}[verb](*words)
    except OSError as error:
        sys.exit(str(error))
