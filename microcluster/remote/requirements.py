"""What a machine must bring, checked in the first minute and named all at once: a rented machine costs money while it waits."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from microcluster.remote.host import Host, RemoteError
from microcluster.waiting import NotReadyError, wait_until

RUNTIME = "nvidia"
INSTALLABLE = ("ubuntu", "18.04")
"""The system on which we know how to install Docker and the driver."""
OLDEST_PYTHON = "3.5"
OLDEST_DOCKER = "17.09"
"""The first with `docker login --password-stdin` and a build on the host's network."""
DOCKER_TIMEOUT_S = 60.0
# Only what Ubuntu 16.04 knows already. A missing program is an empty line; Docker's daemon may still be starting.
FACTS = """. /etc/os-release 2>/dev/null; echo "system=$ID $VERSION_ID"
echo "python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
echo "apt=$(command -v apt-get)"
echo "docker=$(docker --version 2>/dev/null)"
echo "runtimes=$(docker info --format '{{json .Runtimes}}' 2>/dev/null)"
echo "driver=$(nvidia-smi >/dev/null 2>&1 && echo works)"
"""


@dataclass(frozen=True)
class Brought:
    """What a machine has; an empty text for what it has not."""

    system: str
    python: str
    apt: str
    docker: str
    runtimes: str
    driver: str

    @property
    def has_runtime(self) -> bool:
        """Whether Docker knows NVIDIA's runtime."""
        return RUNTIME in (json.loads(self.runtimes or "null") or {})

    @property
    def has_driver(self) -> bool:
        """Whether nvidia-smi reaches the driver."""
        return bool(self.driver)


def ensure_requirements(host: Host) -> bool:
    """Raise with everything that the machine lacks and we cannot install; never changes anything."""
    lacking = lacks(_brought_with_docker(host))
    if lacking:
        raise RemoteError(
            f"checking what {host} brings: {'; '.join(lacking)}. Choose cluster.os UBUNTU_18_64, where all of it is "
            "installed, or a cluster.image that has it."
        )
    return False


def lacks(brought: Brought) -> list[str]:
    """Return what is missing or too old and cannot be installed by us."""
    found = []
    if brought.python and _version(brought.python) < _version(OLDEST_PYTHON):
        found.append(f"Python {brought.python} instead of {OLDEST_PYTHON} or newer")
    if not brought.python and not brought.apt:
        found.append("no Python 3, and no apt-get to install it")
    if brought.docker and _version(brought.docker) < _version(OLDEST_DOCKER):
        found.append(f"{brought.docker.partition(',')[0]} instead of {OLDEST_DOCKER} or newer")
    if _is_installable(brought):
        return found
    missing = []
    if not brought.docker:
        missing.append("no Docker")
    elif not brought.has_runtime:
        missing.append(f"no {RUNTIME} runtime in Docker")
    if not brought.has_driver:
        missing.append("no NVIDIA driver that works")
    if missing:
        found.append(
            f"{' and '.join(missing)}, which we can install on Ubuntu {INSTALLABLE[1]} only, not on {brought.system}"
        )
    return found


def brought(host: Host) -> Brought:
    """Ask a machine what it has."""
    lines = host.run(("sh", "-c", FACTS, "brought")).stdout.splitlines()
    return Brought(**{name: value.strip() for name, _, value in (line.partition("=") for line in lines)})


def _brought_with_docker(host: Host) -> Brought:
    """Ask again while an installed Docker does not answer yet, as after a boot.

    Where we can install, a Docker that never answers is one whose installation was broken off; installing completes it.
    """

    def answered() -> Brought | None:
        found = brought(host)
        return found if found.runtimes not in ("", "null") or not found.docker else None

    try:
        return wait_until(f"Docker on {host}", answered, timeout_s=DOCKER_TIMEOUT_S, usual_s=5)
    except NotReadyError as late:
        found = brought(host)
        if _is_installable(found):
            return found
        raise RemoteError(
            f"{late} Docker is installed there: see why it does not run with fab ssh {host.facts.name} -- journalctl -u docker, "
            "then run the same command again."
        ) from late


def _is_installable(found: Brought) -> bool:
    return tuple(found.system.split()) == INSTALLABLE


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else (0, 0)
