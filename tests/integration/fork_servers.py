"""Fork servers of a test process: a program is imported once, and starts in ten milliseconds instead of a second."""

from functools import cache

from tools.chaos.zygote import PROVIDER, Zygote

_open: list[Zygote] = []


@cache
def fork_server(module: str = PROVIDER) -> Zygote:
    """Return the fork server of a program, started when it is first asked for."""
    _open.append(Zygote(module))
    return _open[-1]


def close() -> None:
    """End all of them."""
    while _open:
        _open.pop().close()
