"""Fork servers of a test process: a program is imported once, and starts in ten milliseconds instead of a second."""

from functools import cache

from tools.chaos.fork_server import PROVIDER, ForkServer

_open: list[ForkServer] = []


@cache
def fork_server(module: str = PROVIDER) -> ForkServer:
    """Return the fork server of a program, started when it is first asked for."""
    _open.append(ForkServer(module))
    return _open[-1]


def close() -> None:
    """End all of them."""
    while _open:
        _open.pop().close()
