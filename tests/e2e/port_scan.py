"""Open ports of an address, as a stranger finds them."""

import select
import socket
import time

PORTS = (*range(1, 1025), 2375, 2376, 3389, 4444, 4445, 5000, 6006, 8080, 8170, 8888)
"""All that systems reserve, and what this project or its neighbours use."""
AT_ONCE = 400
ANSWER_S = 1.0


def answers(address: str, port: int) -> bool:
    """Return whether somebody listens at one port."""
    return open_ports(address, (port,)) == [port]


def open_ports(address: str, ports: tuple[int, ...] = PORTS) -> list[int]:
    """Return the ports that let a connection in; a packet that is dropped is waited for no longer than a second."""
    return [port for start in range(0, len(ports), AT_ONCE) for port in _of(address, ports[start : start + AT_ONCE])]


def _of(address: str, ports: tuple[int, ...]) -> list[int]:
    poller, waiting, found = select.poll(), {}, []
    for port in ports:
        knocking = socket.socket()
        knocking.setblocking(False)
        knocking.connect_ex((address, port))
        poller.register(knocking, select.POLLOUT)
        waiting[knocking.fileno()] = knocking, port
    deadline = time.monotonic() + ANSWER_S
    while waiting and time.monotonic() < deadline:
        for number, _ in poller.poll(50):
            knocking, port = waiting.pop(number)
            found += [port] if knocking.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 else []
            poller.unregister(number)
            knocking.close()
    for knocking, _ in waiting.values():
        knocking.close()
    return sorted(found)
