"""Waits until a host accepts our login; a wrong host key ends the wait."""

from core.waiting import NotReadyError, wait_until
from microcluster.remote.errors import LoginRefusedError, UnreachableError
from microcluster.remote.host import Host

READY_TIMEOUT_S = 600.0
USUAL_S = 20.0


def wait_for_ssh(host: Host, timeout_s: float = READY_TIMEOUT_S, *, every_s: float = 1.0) -> None:
    """Return when ``host`` accepts our key; while it boots it may refuse the connection or the key."""
    last: list[Exception] = []

    def probe() -> bool:
        try:
            host.connect()
        except (UnreachableError, LoginRefusedError) as error:
            last[:] = [error]
            return False
        return True

    try:
        wait_until(f"ssh on {host}", probe, timeout_s=timeout_s, usual_s=USUAL_S, every_s=every_s)
    except NotReadyError as late:
        raise UnreachableError(f"{late} The last error: {last[0]} Run the same command again, or fab status.") from late
