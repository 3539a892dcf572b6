"""Sends a folder's tree to a host: what is missing there, as one stream; what is no longer in the tree is removed."""

import json
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from pydantic import TypeAdapter

import agent
from agent.data.receive_tree import PLACED_AT
from microcluster.core.plain_text import note, printable
from microcluster.jobs.folder_tree import LINK, PROGRAM, Entry, FolderTree
from microcluster.remote.answers import read_answer
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.host import Host
from microcluster.remote.openssh import by_openssh

RECEIVE = Path(agent.__file__).parent / "data" / "receive_tree.py"
PIECE_BYTES, ANSWER_BYTES = 1 << 20, 64 << 20
LOOK_TIMEOUT_S = 600.0
SAY_EVERY_S = 10
MB = 10**6
NUMBERS, NAMES = TypeAdapter(list[int]), TypeAdapter(list[str])


def send_tree(host: Host, tree: FolderTree, target: str) -> bool:
    """Make ``target`` on the host an exact copy of the tree; return whether that was needed.

    Where it is one already, nobody needs the folder on this computer.

    Raises:
        RemoteError: a file has changed since it was read, or did not arrive.
    """
    if host.run((*_receiver(), "look", target, tree.id), accept=(0, 1), timeout_s=LOOK_TIMEOUT_S).exit_code == 0:
        return False
    try:
        entries = tree.entries()
    except LookupError as changed:
        raise RemoteError(
            f"sending {tree.path} to {host}: {changed}, and the machine has no copy. Nothing was started. Run the same command again "
            "when no program writes there."
        ) from changed
    try:
        _send(host, tree, target, entries)
    except UnreachableError:  # What has arrived stays there.
        _send(host, tree, target, entries)
    return True


def _send(host: Host, tree: FolderTree, target: str, entries: Sequence[Entry]) -> None:
    doing = f"sending {tree.path} to {host}"
    with by_openssh(host).talk((*_receiver(), "take", target, tree.id), doing) as (send, receive):
        send(json.dumps([entry[:4] for entry in entries]).encode() + b"\n")
        missing = _named(entries, read_answer(NUMBERS, _line(receive, doing), doing), doing)
        for piece in _shown(_tar(tree.folder, missing), sum(one.size for one in missing), host, tree):
            send(piece)
        wrong = read_answer(NAMES, _line(receive, doing), doing)
    if wrong:
        raise RemoteError(f"{doing}: {printable(wrong[0])} did not arrive whole. Run the same command again.")


def _receiver() -> tuple[str, ...]:
    return "python3", "-c", RECEIVE.read_text()


def _line(receive: Callable[[int], bytes], doing: str) -> bytes:
    """Return the next line that the host prints."""
    line = bytearray()
    while not line.endswith(b"\n") and (piece := receive(PIECE_BYTES)):
        line += piece
        if len(line) > ANSWER_BYTES:
            raise RemoteError(f"{doing}: the answer is too long. Look at the machine, or run `make down`.")
    if not line.endswith(b"\n"):
        raise ConnectionError("it ended before it had answered")
    return bytes(line)


def _named(entries: Sequence[Entry], numbers: Sequence[int], doing: str) -> list[Entry]:
    if any(not 0 <= number < len(entries) for number in numbers):
        raise RemoteError(f"{doing}: it asks for files that there are not. Look at the machine, or run `make down`.")
    return [entries[number] for number in numbers]


def _tar(folder: Path, entries: Sequence[Entry]) -> Iterator[bytes]:
    """Yield a tar of the entries, in pieces of about PIECE_BYTES."""
    waiting, size, sent = [], 0, 0
    for entry in entries:
        for piece in chain((_header(entry),), _content(folder, entry) if entry.kind != LINK else ()):
            waiting.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield b"".join(waiting)
                waiting, size, sent = [], 0, sent + size
    end = bytes(2 * tarfile.BLOCKSIZE)
    # tar waits for a whole record.
    yield b"".join((*waiting, end, bytes(-(sent + size + len(end)) % tarfile.RECORDSIZE)))


def _header(entry: Entry) -> bytes:
    header = tarfile.TarInfo(entry.name)
    header.mtime, header.mode = PLACED_AT, 0o755 if entry.kind == PROGRAM else 0o644
    if entry.kind == LINK:
        header.type, header.linkname = tarfile.SYMTYPE, entry.digest
    else:
        header.size = entry.size
    return header.tobuf(tarfile.GNU_FORMAT)


def _content(folder: Path, entry: Entry) -> Iterator[bytes]:
    """Yield the content of a file that is what it was when it was read, and what fills its last block."""
    remaining = entry.size
    try:
        with open(os.open(f"{folder}/{entry.name}", os.O_RDONLY | os.O_NOFOLLOW), "rb", 0) as content:
            while remaining and (piece := content.read(min(PIECE_BYTES, remaining))):
                remaining -= len(piece)
                yield piece
            facts = os.fstat(content.fileno())
    except OSError as gone:
        raise _changed(folder, entry.name) from gone
    if remaining or (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino) != entry.version:
        raise _changed(folder, entry.name)
    yield bytes(-entry.size % tarfile.BLOCKSIZE)


def _shown(pieces: Iterator[bytes], total: int, host: Host, tree: FolderTree) -> Iterator[bytes]:
    """Yield pieces, and say now and then how many bytes that were."""
    began = said = time.monotonic()
    done = 0
    for piece in pieces:
        yield piece
        done, now = done + len(piece), time.monotonic()
        if now - said >= SAY_EVERY_S:
            said, took = now, now - began
            so_far = f"{done // MB} of {total // MB} MB, {took:.0f} s so far, {done / MB / took:.0f} MB/s"
            note(f"{host.facts.name}: sending {Path(tree.path).name}: {so_far}")


def _changed(folder: Path | str, name: str) -> RemoteError:
    return RemoteError(
        f"sending {folder}: {printable(name)} has changed while it was sent, so nothing was started. Run the same command again when "
        "no program writes there."
    )
