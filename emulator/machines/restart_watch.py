"""Watch for machines that others start, such as `docker restart`, so that they get their rules."""

import logging
import threading
from collections.abc import Callable

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from emulator.machines.container import GUEST_LABEL
from emulator.machines.spec import MachineError

AGAIN_S = 1  # After Docker has gone away.
CLOSE_S = 60
logger = logging.getLogger(__name__)


class StartWatch:
    """A thread that calls ``missed`` when it begins, and ``started`` for every container that starts."""

    def __init__(
        self, client: docker.DockerClient, label: str, missed: Callable[[], None], started: Callable[[int], None]
    ) -> None:
        self._client, self._label = client, label
        self._missed, self._started = missed, started
        self._closed = threading.Event()
        self._events = None
        self._thread = threading.Thread(target=self._run, name="machine-starts", daemon=True)

    def open(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching; once this returns, no gate is being opened."""
        self._closed.set()
        if self._events is not None:
            self._events.close()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._watch()
            except (DockerException, RequestException, OSError, ValueError) as gone:  # ValueError: closed while read.
                if not self._closed.is_set():
                    logger.warning("Watching for starting machines: %s. Trying again.", gone)
            self._closed.wait(AGAIN_S)

    def _watch(self) -> None:
        filters = {"label": self._label, "type": "container", "event": "start"}
        self._events = self._client.events(decode=True, filters=filters)
        if self._closed.is_set():  # Meanwhile, and whoever closed it could not see what to close.
            self._events.close()
            return
        self._guarded(self._missed)  # After the subscription, so that no start falls in between.
        for event in self._events:
            self._guarded(self._started, int(event["Actor"]["Attributes"][GUEST_LABEL]))

    def _guarded(self, action: Callable[..., None], *arguments: int) -> None:
        try:
            action(*arguments)
        except MachineError as failed:
            logger.warning("A machine was started by others and stays without network: %s", failed)
