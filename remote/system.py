"""Time and packages: what every later step takes for granted."""

from __future__ import annotations

import time
from collections.abc import Callable

from remote.host import Host, RemoteError

COMMANDS = {"python3": "python3", "curl": "curl", "mkfs.ext4": "e2fsprogs", "wipefs": "util-linux", "cmp": "diffutils",
            "ip": "iproute2", "update-ca-certificates": "ca-certificates"}  # fmt: skip
INSTALL_TIMEOUT_S = 900.0
LARGEST_SKEW_S = 60.0
APT = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", "DPkg::Lock::Timeout=300")


def ensure_system(host: Host, clock: Callable[[], float] = time.time) -> bool:
    """Install what is missing and let the clock be kept; return whether anything changed."""
    changed = _ensure_packages(host)
    return _ensure_time(host, clock) or changed


def has_systemd(host: Host) -> bool:
    """Return whether systemd runs the machine."""
    return host.run(("test", "-d", "/run/systemd/system"), accept=(0, 1)).exit_code == 0


def has_command(host: Host, name: str) -> bool:
    """Return whether a command is on the host's path."""
    return host.run(("sh", "-c", 'command -v "$1"', "has", name), accept=(0, 1, 127)).exit_code == 0


def _ensure_packages(host: Host) -> bool:
    missing = sorted({package for command, package in COMMANDS.items() if not has_command(host, command)})
    if missing:
        host.run((*APT, "update"), timeout_s=INSTALL_TIMEOUT_S)
        host.run((*APT, "install", "-y", "--no-install-recommends", *missing), timeout_s=INSTALL_TIMEOUT_S)
    return bool(missing)


def _ensure_time(host: Host, clock: Callable[[], float]) -> bool:
    skew = float(host.run(("date", "+%s.%N")).stdout) - clock()
    if abs(skew) <= LARGEST_SKEW_S:
        return False
    if not has_systemd(host):
        raise RemoteError(
            f"reading the clock of {host}: it is {skew:+.0f} s off, and nothing there keeps it. Set it, then go on."
        )
    host.run(("timedatectl", "set-ntp", "true"))
    return True
