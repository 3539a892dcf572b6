"""Time and packages, which every later step needs."""

import time
from collections.abc import Callable, Mapping

from pydantic import TypeAdapter

from microcluster.analysis.records import Seconds
from microcluster.core.polling import NotReadyError, wait_until
from microcluster.remote.answers import read_answer
from microcluster.remote.errors import CommandError, RemoteError
from microcluster.remote.host import Host

COMMANDS = {"python3": "python3", "curl": "curl", "mkfs.ext4": "e2fsprogs", "cmp": "diffutils", "ip": "iproute2",
            "update-ca-certificates": "ca-certificates", "mount": "mount",
            **dict.fromkeys(("wipefs", "blkid", "lsblk", "findmnt", "blockdev"), "util-linux")}  # fmt: skip
"""Commands that the steps call, each with its Debian package."""
INSTALL_TIMEOUT_S = 900.0
LARGEST_SKEW_S = 60.0
CLOCK_TIMEOUT_S = 120.0
TIME = TypeAdapter(Seconds)
SYNCHRONIZED = "synchronized: yes"
"""Line of timedatectl's output for a clock that a time server has set."""
APT_TIMEOUT_S = 600.0
# Ubuntu 18.04's apt has no DPkg::Lock::Timeout and fails while its daily update runs, as after the first boot.
APT_LOCKS = (
    "/var/lib/dpkg/lock-frontend",
    "/var/lib/dpkg/lock",
    "/var/lib/apt/lists/lock",
    "/var/cache/apt/archives/lock",
)
APT_IS_FREE = (
    "import fcntl,os,sys\n"
    "for path in filter(os.path.exists, sys.argv[1:]): fcntl.lockf(open(path, 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
)
# Keep configuration files that the image has changed; dpkg would ask.
KEEP_FILES = ("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
QUIETLY = ("env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
APT = (*QUIETLY, "apt-get", "-q", "-y", *KEEP_FILES)
CONFIGURE = ("dpkg", "--force-confdef", "--force-confold", "--configure", "-a")
INTERRUPTED = "dpkg was interrupted"
LOCKED = ("Could not get lock", "Unable to lock", "Unable to acquire the dpkg frontend lock")


def ensure_system(host: Host, clock: Callable[[], float] = time.time) -> bool:
    """Install missing packages and set the clock; return whether anything changed."""
    changed = ensure_commands(host, COMMANDS)
    return _ensure_time(host, clock) or changed


def has_systemd(host: Host) -> bool:
    """Return whether systemd runs the machine."""
    return host.run(("test", "-d", "/run/systemd/system"), accept=(0, 1)).exit_code == 0


def _has_command(host: Host, name: str) -> bool:
    """Return whether a command is on the host's path."""
    return host.run(("sh", "-c", 'command -v "$1"', "has", name), accept=(0, 1, 127)).exit_code == 0


def apt_get(host: Host, *words: str, timeout_s: float = INSTALL_TIMEOUT_S) -> None:
    """Run apt-get when no other installation runs on the host."""
    free, argv = ("python3", "-c", APT_IS_FREE, *APT_LOCKS), (*APT, *words)

    def done() -> bool:
        if host.run(free, accept=(0, 1, 127)).exit_code == 1:
            return False
        completed = host.run(argv, timeout_s=timeout_s, accept=range(256))
        if completed.exit_code and any(sign in completed.stderr for sign in LOCKED):
            return False
        if completed.exit_code and INTERRUPTED in completed.stderr:  # By a lost connection.
            host.run((*QUIETLY, *CONFIGURE), timeout_s=timeout_s)
            return False
        if completed.exit_code:
            raise CommandError(str(host), argv, completed)
        return True

    wait_until(f"the end of other installations on {host}", done, timeout_s=APT_TIMEOUT_S, usual_s=60)


def ensure_commands(host: Host, packages: Mapping[str, str]) -> bool:
    """Install the packages of the commands that a host does not have; return whether any was missing."""
    missing = sorted({package for command, package in packages.items() if not _has_command(host, command)})
    if missing:
        apt_get(host, "update")
        apt_get(host, "install", "--no-install-recommends", *missing)
    return bool(missing)


def _ensure_time(host: Host, clock: Callable[[], float]) -> bool:
    """Turn on time synchronization and wait until the clock is set: it must not jump during a run."""
    skew = _skew(host, clock)
    if abs(skew) <= LARGEST_SKEW_S:
        return False
    if not has_systemd(host):
        raise RemoteError(
            f"reading the clock of {host}: it is {skew:+.0f} s off, and nothing there synchronizes it. Set it, then repeat."
        )
    host.run(("timedatectl", "set-ntp", "true"))
    try:
        wait_until(
            f"the clock of {host} to be set",
            # If a time server has set it, this computer's clock is wrong.
            lambda: abs(_skew(host, clock)) <= LARGEST_SKEW_S or SYNCHRONIZED in host.run(("timedatectl",)).stdout,
            timeout_s=CLOCK_TIMEOUT_S,
            usual_s=10,
        )
    except NotReadyError as late:
        raise RemoteError(
            f"setting the clock of {host}: it is {skew:+.0f} s off, and no time server has answered within "
            f"{CLOCK_TIMEOUT_S:.0f} s. Set it (fab ssh {host.facts.name} -- date -s TIME), then run the same command again."
        ) from late
    return True


def _skew(host: Host, clock: Callable[[], float]) -> float:
    """Return by how many seconds the machine's clock is ahead of this computer's."""
    return read_answer(TIME, host.run(("date", "+%s.%N")).stdout, f"reading the clock of {host}") - clock()
