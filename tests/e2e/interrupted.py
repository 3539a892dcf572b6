"""Ctrl-C of the tests: the processes that run them get time for their fixtures, then what is left of machines is removed.

pytest-xdist alone kills these processes after ten seconds, in which none of their fixtures ends.
"""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

import docker
import pytest
from xdist.workermanage import WorkerController

from emulator.machines.container_machines import ContainerMachines
from emulator.machines.networks import ACCOUNT_LABEL, STATE_LABEL

FIXTURES_LIMIT_S = 40
"""Less than the minute that `make test` gives a suite which was not over in time."""
FIXED = f"{tempfile.gettempdir()}/microcluster-test-"
"""Begins the folders of accounts that belong to no copy of the project."""
ANY = ({1: "10.0.0.0/29"}, "10.0.0.8/29", "registry", 1)
"""Networks and registry of an account that is only removed."""


class Interrupted:
    """The process that hands out the tests."""

    def __init__(self) -> None:
        self.workers: list[WorkerController] = []

    def pytest_testnodeready(self, node: WorkerController) -> None:
        self.workers.append(node)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> Iterator[None]:
        """Have every process end its fixtures; pytest-xdist ends the processes, and nobody adds to what is removed then."""
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            end_fixtures(self.workers)
        yield
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            made_in = (f"{session.config._tmp_path_factory.getbasetemp()}/", FIXED)
            end_commands(made_in)
            remove_machines(made_in)


def interrupt_once(number: int, frame: FrameType | None) -> None:
    """Be interrupted, and by no further Ctrl-C: a terminal sends one to all processes, and fixtures have to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def end_fixtures(workers: Sequence[WorkerController]) -> None:
    """Interrupt the processes that run tests, and wait until they have ended their fixtures."""
    for worker in workers:
        worker.gateway._io.popen.send_signal(signal.SIGINT)
    deadline = time.monotonic() + FIXTURES_LIMIT_S
    for worker in workers:
        with contextlib.suppress(worker.channel.TimeoutError, worker.channel.RemoteError, EOFError):
            worker.channel.waitclose(max(deadline - time.monotonic(), 0))


def end_commands(made_in: tuple[str, ...]) -> None:
    """Kill what commands and emulators of the tests' accounts have left; they would go on renting."""
    signs = tuple(f"{option}{place}".encode() for place in made_in for option in ("MICROCLUSTER_HOME=", "--state\0"))
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "environ").read_bytes() + b"\0" + (folder / "cmdline").read_bytes()
            if any(sign in words for sign in signs):
                os.kill(int(folder.name), signal.SIGKILL)


def remove_machines(made_in: tuple[str, ...]) -> None:
    """Remove the machines, disks and networks of every emulated account whose folder begins in one of these ways."""
    networks = docker.from_env().networks.list(filters={"label": STATE_LABEL})
    labels = [network.attrs["Labels"] for network in networks]
    accounts = {(each[ACCOUNT_LABEL], each[STATE_LABEL]) for each in labels if each[STATE_LABEL].startswith(made_in)}
    for account, state in accounts:
        ContainerMachines(account, Path(state), *ANY).reset()
