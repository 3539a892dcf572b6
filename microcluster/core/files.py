"""Whole files, whole folders and locks: what neither a crash nor another command at the same time may break.

Only the standard library: setup runs before any package is installed.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_whole(path: Path, content: str | bytes | Iterator[str], mode: int = 0o666) -> None:
    """Write a file whole or not at all, a large one in pieces; ``mode`` is what it allows, less the process's own mask."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    with open(scratch, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        for piece in (content,) if isinstance(content, str | bytes) else content:
            file.write(piece.encode() if isinstance(piece, str) else piece)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of ``folder`` when the block succeeds."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        new_folder = Path(scratch) / "made"
        new_folder.mkdir()
        yield new_folder
        shutil.rmtree(folder, ignore_errors=True)
        new_folder.rename(folder)


@contextmanager
def locked(path: Path, on_busy: Callable[[str], None]) -> Iterator[IO[str]]:
    """Hold a lock, and yield its file; the kernel releases it when this process ends.

    Args:
        on_busy: gets what the holder has written into the file; it raises, or this process waits.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            on_busy(file.read())
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        yield file
