"""Tests with real machines: they need root, Docker and the machine image, and say in one line when they cannot run."""

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docker
import pytest
import requests.exceptions
from interrupted import Interrupted, interrupt_once
from one_cluster import Renter, renting
from remote_cluster import cluster, hosts, imported, keys, machines, mounted, offered, running  # noqa: F401 - fixtures
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from emulator.machines.spec import MACHINE_IMAGE
from tests.product import SHARED

RESULTS = Path(__file__).parents[2] / "artifacts" / "e2e.json"
TWO_MACHINES = "two machines"
GROUPS = {
    "gallery": ("test_gallery",),
    "whole way": ("test_whole_way",),
    "public programs": ("test_public_programs",),
    TWO_MACHINES: (),
    "one account": ("test_mxnet", "test_own_program", "test_texar"),
    "paperspace": ("test_paperspace", "test_paperspace_machines"),
    "queue": ("test_queue", "test_queue_stack"),
}
"""Files that share machines, an account or its networks, the longest first; all others share the two of `remote_cluster`."""


@pytest.fixture(scope="session")
def renter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    """Return a copy of the project with an account from which several files rent, one after the other, by stacks of their own."""
    with renting(tmp_path_factory.mktemp("product"), SHARED) as renter:
        yield renter


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "containers: needs root, a Docker daemon and the machine image")
    signal.signal(signal.SIGINT, interrupt_once)
    if not hasattr(config, "workerinput"):  # The process that hands out the tests sees all of their results.
        config.pluginmanager.register(Results())
        config.pluginmanager.register(Interrupted())


class ByMachines(LoadScopeScheduling):
    """Give all tests of a group to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    file = Path(nodeid.split("::", maxsplit=1)[0]).stem
    return next((group for group, files in GROUPS.items() if file in files), TWO_MACHINES)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByMachines:
    config.option.loadscopereorder = False  # Groups begin in their order above, not with the one that has most tests.
    return ByMachines(config, log)


class Results:
    """Results of each test file, for the table of systems; see docs/tools/pages.py."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        day = datetime.now(UTC).date().isoformat()
        file = self.files.setdefault(report.nodeid.split("::")[0], {"outcomes": {}, "seconds": 0.0, "day": day})
        file["seconds"] += report.duration
        if report.when == "call" or report.outcome != "passed":
            file["outcomes"][report.outcome] = file["outcomes"].get(report.outcome, 0) + 1

    def pytest_sessionfinish(self) -> None:
        """Add to the results of earlier runs."""
        before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({**before, **self.files}, indent=1, sort_keys=True))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: list(GROUPS).index(group_of(item.nodeid)))
    of_containers = [item for item in items if item.get_closest_marker("containers")]
    if of_containers and (reason := why_not()):
        for item in of_containers:
            item.add_marker(pytest.mark.skip(reason=reason))


def why_not() -> str | None:
    """Why no machine can run here; None when they can."""
    if os.geteuid() != 0:
        return "container tests need root"
    try:
        docker.from_env(timeout=10).images.get(MACHINE_IMAGE)
    except docker.errors.ImageNotFound:
        return f"container tests need the image {MACHINE_IMAGE}: run `make images`"
    except (docker.errors.DockerException, requests.exceptions.RequestException):
        return "container tests need a Docker daemon: run `make setup`"
    return None
