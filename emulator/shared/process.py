"""The emulator's process from outside: start it, stop it, ask it, and find out who has its port."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import requests

from emulator.machines.certificates import AUTHORITY_FILE
from emulator.machines.host_tools import LOCK_FILE, is_locked, wait_until
from emulator.shared.settings import Settings

PID_FILE, LOG_FILE, ADDRESS_FILE = "emulator.pid", "emulator.log", "emulator.address"
START_TIMEOUT_S, STOP_TIMEOUT_S, ANSWER_LIMIT_S = 120, 60, 10
TCP_LISTEN = "0A"
ONCE_READABLE = ("account.sqlite*", "authority.pem", "emulator.*", "history.jsonl", "registry")


class ProcessError(Exception):
    """The emulator could not be started, stopped or asked; the message is a full sentence."""


def running_pid(settings: Settings) -> int | None:
    """The process that serves this account: the one that holds the account's lock."""
    return _read_pid(settings) if is_locked(settings.state / LOCK_FILE) else None


def keep_private(state: Path) -> None:
    """Make an account's folder, with what an older version left readable in it, its owner's alone."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    state.chmod(0o700)
    for each in (path for pattern in ONCE_READABLE for path in state.glob(pattern)):
        each.chmod(0o700 if each.is_dir() else 0o600)


def claim(settings: Settings) -> IO[str]:
    """Take the account for this process; the lock lasts as long as the file that is handed back is open."""
    keep_private(settings.state)
    file = open(settings.state / LOCK_FILE, "w")  # noqa: SIM115 - it stays open on purpose
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as held:
        file.close()
        raise ProcessError(
            f"Serving the account in {settings.state}: process {_read_pid(settings)} serves it already. "
            f"Stop that one first: {settings.COMMAND.format('stop')}."
        ) from held
    (settings.state / PID_FILE).write_text(f"{os.getpid()}\n")
    return file


def write_address(settings: Settings) -> None:
    """Write where the server listens, for the commands that come later with other settings."""
    (settings.state / ADDRESS_FILE).write_text(f"{settings.address}\n")


def address_of(settings: Settings) -> str:
    """The address of the account's last server; the address of the settings if none was started yet."""
    with contextlib.suppress(FileNotFoundError):
        return (settings.state / ADDRESS_FILE).read_text().strip()
    return settings.address


def listen(address: str, port: int) -> socket.socket:
    """A listening socket; a taken port is an error that names the process that has it."""
    # asyncio sends answers without delay (TCP_NODELAY) only where the socket names its protocol; else each one takes 40 ms more.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as taken:
        listener.close()
        owner = port_owner(port)
        raise ProcessError(
            f"Listening on {address}:{port}: {taken.strerror}"
            + (f", by process {owner}. " if owner else ". ")
            + "Stop what uses the port, or choose another one: --port, or a line like `port = 8171` in the settings.toml "
            "beside the account's other files."
        ) from taken
    listener.listen(512)
    return listener


def port_owner(port: int, *, everywhere: bool = False) -> str | None:
    """The id and the command of the process that listens on a port, if this user may see it.

    Args:
        everywhere: look for one that listens on all addresses of this computer.
    """
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            inodes |= {row[9] for row in rows if row[3] == TCP_LISTEN and _is_at(row[1], port, everywhere=everywhere)}
    sockets = {f"socket:[{inode}]" for inode in inodes}
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and sockets & _open_files(folder):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                return f"{folder.name} ({command[:80]})"
    return None


def _open_files(process: Path) -> set[str]:
    """The open files of a process, without those that it closes during the look."""
    paths = set()
    for each in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            paths.add(os.readlink(each))
    return paths


def _is_at(entry: str, port: int, *, everywhere: bool) -> bool:
    address, _, number = entry.partition(":")
    return int(number, 16) == port and not (everywhere and int(address, 16))


def start(settings: Settings, arguments: list[str]) -> dict[str, Any]:
    """Start the server in a session of its own and return its status once it answers."""
    keep_private(settings.state)
    log = settings.state / LOG_FILE
    with log.open("ab") as output:
        begin = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "emulator", "serve", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=Path(__file__).resolve().parents[2],
        )

    def ready() -> dict[str, Any] | None:
        if process.poll() is not None:
            raise ProcessError(_last_line(log, begin))
        # Not by the lock: a try holds it for a moment, in which the server could not take it.
        return ask_status(settings) if _read_pid(settings) == process.pid else None

    what = f"an answer of the emulator (process {process.pid})"
    return wait_until(what, ready, START_TIMEOUT_S, look=str(log), error=ProcessError)


def stop(settings: Settings) -> bool:
    """End the server and wait for its end; False when none runs."""
    pid = running_pid(settings)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    what, log = f"the end of the emulator (process {pid})", str(settings.state / LOG_FILE)
    # The server removes its pid file a moment before it lets go of the account.
    wait_until(what, lambda: not is_locked(settings.state / LOCK_FILE), STOP_TIMEOUT_S, look=log, error=ProcessError)
    return True


def ask_status(settings: Settings) -> dict[str, Any] | None:
    """The status of the running server, on whichever port it is; None when it does not answer."""
    try:
        status = _ask("GET", settings, "/status").json()
    except (requests.RequestException, OSError, ValueError):
        return None
    return status if status.get("state") == str(settings.state) else None


def post(settings: Settings, path: str) -> dict[str, Any]:
    """Send the running server a request that only this computer may send; return the answer."""
    look = settings.COMMAND.format("status")
    try:
        answer = _ask("POST", settings, path)
    except requests.RequestException as unreachable:
        raise ProcessError(f"Asking the emulator for {path}: no answer. Is it running? See: {look}") from unreachable
    if not answer.ok:
        raise ProcessError(f"Asking the emulator for {path}: {answer.json()['error']} See: {look}")
    return answer.json()


def _ask(method: str, settings: Settings, path: str) -> requests.Response:
    """Send a request to the running server, past every proxy."""
    authority = settings.state / AUTHORITY_FILE
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(authority) if authority.exists() else True
        if (settings.state / settings.KEY_FILE).exists():  # A server of an older version has none.
            session.headers["Authorization"] = f"Bearer {settings.api_key}"
        return session.request(method, f"{address_of(settings)}{path}", timeout=ANSWER_LIMIT_S)


def _read_pid(settings: Settings) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        return int((settings.state / PID_FILE).read_text())
    return None


def _last_line(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else f"Starting the emulator: it ended without a message. See {log}."
