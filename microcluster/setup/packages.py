"""Installs the Debian packages that the local stack needs on this machine."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from microcluster.core.home import Home
from microcluster.setup.errors import CommandFailed
from microcluster.setup.process import Step, run_logged

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DOCKER_PACKAGE = "docker.io"
HOST_COMMANDS: Mapping[str, str] = {
    "mmdebstrap": "mmdebstrap",
    "docker-registry": "docker-registry",
    "iptables": "iptables",
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "losetup": "mount",
    "ssh": "openssh-client",
}
"""Commands of the emulator, its machines and the image builds, with their packages."""


def missing_packages(which: Callable[[str], str | None] | None = None) -> tuple[str, ...]:
    """Return the packages of missing ``HOST_COMMANDS``."""
    look = which or (lambda command: shutil.which(command, path=system_path(os.environ)))
    return tuple(sorted({package for command, package in HOST_COMMANDS.items() if look(command) is None}))


def system_path(environment: Mapping[str, str]) -> str:
    """Return PATH with the system's folders, which a user's PATH often lacks."""
    return f"{environment.get('PATH', '')}:{SYSTEM_PATH}"


def install(packages: tuple[str, ...], why: str, home: Home) -> None:
    """Install ``packages``, or raise with the command that does."""
    command = f"apt-get install {' '.join(packages)}"
    reason = None if Path("/usr/bin/apt-get").exists() else "this is neither Debian nor Ubuntu"
    if reason or os.geteuid() != 0:
        raise CommandFailed(
            f"{why}, and set-up cannot install it because {reason or 'this is not root'}. Run `{command}` as root, or your system's own command, then repeat."
        )
    patience = ("-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=120")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": system_path(os.environ)}
    hint = f"Run `apt-get update && {command}` by hand to see more, then repeat."
    for step, usual, argv in (
        ("reading the package lists", "15 s", ("apt-get", *patience, "update")),
        (
            f"installing {', '.join(packages)}",
            "1 min",
            ("apt-get", *patience, "install", "-y", "--no-install-recommends", *packages),
        ),
    ):
        run_logged(Step(step, usual, argv, home.logs / "apt-get.log", hint), environment)
