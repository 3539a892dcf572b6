"""Whole files, locks and waits on a machine, and the same for several things at once."""

import fcntl
import hashlib
import json
import os
import socket
import threading
import time
from typing import IO, Any, Callable, Iterable, List, Optional, TypeVar

from agent.kill_run import asked

PIECE = 1 << 20
LINE_BYTES = 1 << 20
"""A longer line is read in pieces: output without line ends must not fill the memory."""
LIST_TIMEOUT_S = 8
"""Less than the time in which a node has to say how it is; a list over the network takes a few milliseconds."""
T = TypeVar("T")
R = TypeVar("R")


def write_whole(path: str, text: str) -> None:
    """Replace a file at once, so that nobody ever reads half of it, also after a crash."""
    with open(path + ".new", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".new", path)


def write_json(path: str, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


def read_json(path: str) -> Any:
    """Return what a file of ours holds, nothing where there is none that can be read."""
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def hash_of(path: str, kind: str = "sha256", size: float = float("inf")) -> Optional[str]:
    """Return the hash of a file, or of its first ``size`` bytes; None where there is no file."""
    found, left = hashlib.new(kind), size
    try:
        with open(path, "rb") as file:
            while left:
                piece = file.read(min(PIECE, left))
                if not piece:
                    break
                found.update(piece)
                left -= len(piece)
    except FileNotFoundError:
        return None
    return found.hexdigest()


def try_lock(path: str, timeout_s: float = 0.0, every_s: float = 0.1, mode: str = "w") -> Optional[IO[Any]]:
    """Return the open file of a lock that is ours until it is closed, or None where somebody else has it for all that time."""
    file = open(path, mode)  # noqa: SIM115 - the lock is the open file

    def is_ours() -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    if wait_until(is_ours, timeout_s, every_s):
        return file
    file.close()
    return None


def is_locked(path: str) -> bool:
    """Return whether somebody has a lock; whoever looks does not seem to have it."""
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except OSError:
        return True


def wait_until(is_so: Callable[[], Any], limit_s: float, every_s: float) -> Any:
    """Look until something is so or the time is over; return what the last look said."""
    deadline = time.monotonic() + limit_s
    while True:
        found = is_so()
        if found or time.monotonic() >= deadline:
            return found
        time.sleep(every_s)


def why_silent(folder: str) -> str:
    """Return why a folder on a drive cannot be listed, or an empty text.

    A process that waits for a drive may be beyond any signal: another one asks, and is left behind when it does not come back.
    """
    code, output = asked(["ls", folder], LIST_TIMEOUT_S)
    return output.strip()[-200:] if code else ""


def why_not_free(address: str, port: int) -> str:
    """Return why nobody could listen there, or an empty text."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return os.strerror(error.errno)
    return ""


def parallel(act: Callable[[T], R], items: Iterable[T]) -> List[R]:
    """Return what ``act`` returned for each of the items, all of them at the same time; raise what one of them raised."""
    answers, errors = {}, []

    def run(number: int, item: T) -> None:
        try:
            answers[number] = act(item)
        except Exception as error:  # noqa: BLE001 - raised below, where somebody hears it
            errors.append(error)

    # None of them keeps a process that was told to end.
    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(items)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [answers[number] for number in range(len(threads))]
