"""Tools of this host for machines: Docker, Debian packages, root-only files, and the wait."""

import fcntl
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from requests.exceptions import RequestException

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
POLL_S = 0.05
LOCK_FILE = "emulator.lock"
"""File in an account's folder that the emulator of the account has locked."""
SILENT = "the Docker daemon does not answer. Start it (`make setup` does), or use `--machines none`."
API_TIMEOUT_S = 120
CONNECTIONS = 64
T = TypeVar("T")


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
        completed = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as late:
        raise MachineError(f"{doing}: `{argv[0]}` did not end within {LIMIT_S} s.") from late
    if completed.returncode != 0:
        reason = " ".join(completed.stderr.split()) or "no message"
        raise MachineError(f"{doing}: `{' '.join(argv)}` ended with exit code {completed.returncode}: {reason}")
    return completed.stdout


def in_network_of(pid: int, doing: str, argv: Sequence[str], *, stdin: str = "") -> str:
    """Run a host program inside the network of process ``pid``."""
    find(argv[0])
    return run(doing, ("nsenter", "-t", str(pid), "-n", *argv), stdin=stdin)


def connect() -> docker.DockerClient:
    """A client of the local daemon that many threads may use at once."""
    with docker_doing("Connecting to Docker"):
        client = docker.from_env(timeout=API_TIMEOUT_S, max_pool_size=CONNECTIONS)
        client.ping()
        return client


@contextmanager
def docker_doing(doing: str) -> Iterator[None]:
    """Turn what Docker raises into a MachineError that begins with ``doing``."""
    try:
        yield
    except ImageNotFound as missing:
        raise MachineError(f"{doing}: {_reason(missing)}. Run `make images`.") from missing
    except APIError as refused:
        raise MachineError(f"{doing}: Docker refused: {_reason(refused)}.") from refused
    except (DockerException, RequestException) as silent:
        raise MachineError(f"{doing}: {SILENT}") from silent


def _reason(error: APIError) -> str:
    return " ".join(str(error.explanation or error).split()).rstrip(".")


def write_private(path: Path, content: str) -> None:
    """Replace a file in one step; nobody but root reads it."""
    part = path.with_name(f".{path.name}.part")
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(content)
    part.replace(path)


def kept_text(path: Path, make: Callable[[], str]) -> str:
    """The text of a file for root alone, made when it is first asked for."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, make())
    return path.read_text()


def is_locked(path: Path) -> bool:
    """Whether a process that lives holds the lock of a file."""
    if not path.exists():
        return False
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def wait_until(
    what: str,
    probe: Callable[[], T | None],
    timeout_s: float,
    *,
    look: str = "the emulator's log",
    error: type[Exception] = MachineError,
) -> T:
    """Return the first true answer of ``probe``, which raises when waiting is useless."""
    end = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (answer := probe()):
        if time.monotonic() > end:
            raise error(f"Waiting for {what}: not there after {timeout_s:g} s. Look into {look}.")
        pause.wait(POLL_S)
    return answer
