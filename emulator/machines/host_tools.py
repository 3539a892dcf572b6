"""The host's programs that machines need, and their Debian packages."""

import os
import shutil
import subprocess
from collections.abc import Sequence

from emulator.machines.spec import MachineError

PACKAGES = {
    "docker-registry": "docker-registry",
    "ip": "iproute2",
    "iptables-restore": "iptables",
    "losetup": "mount",
    "nsenter": "util-linux",
    "tc": "iproute2",
}
SYSTEM_PATH = "/usr/sbin:/sbin:/usr/local/sbin"  # Some users' PATH lacks these.
LIMIT_S = 60


def find(tool: str) -> str:
    """The path of a host program; a missing one is an error with the command that installs it."""
    path = shutil.which(tool, path=f"{os.environ.get('PATH', os.defpath)}:{SYSTEM_PATH}")
    if path is None:
        raise MachineError(
            f"Preparing the machines: `{tool}` is not installed. Run `apt-get install {PACKAGES[tool]}`."
        )
    return path


def require_all() -> None:
    """Refuse to begin when a program or the right to use it is missing."""
    for tool in PACKAGES:
        find(tool)
    if os.geteuid() != 0:
        raise MachineError("Preparing the machines: they need root. Run as root, or use `--machines none`.")


def run(doing: str, argv: Sequence[str], *, stdin: str = "") -> str:
    """Run a host program and return what it printed; ``doing`` opens the sentence of its failure."""
    command = (find(argv[0]), *argv[1:])
    try:
        ended = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise MachineError(f"{doing}: `{argv[0]}` did not end within {LIMIT_S} s.") from late
    if ended.returncode != 0:
        reason = " ".join(ended.stderr.split()) or "no message"
        raise MachineError(f"{doing}: `{' '.join(argv)}` ended with exit code {ended.returncode}: {reason}")
    return ended.stdout


def in_network_of(pid: int, doing: str, argv: Sequence[str], *, stdin: str = "") -> str:
    """Run a host program inside the network of process ``pid``."""
    find(argv[0])
    return run(doing, ("nsenter", "-t", str(pid), "-n", *argv), stdin=stdin)
