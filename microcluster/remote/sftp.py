"""Files over an open SSH connection, in pieces."""

from collections.abc import Iterator
from pathlib import Path

import fabric
import paramiko

from microcluster.remote.connection import SILENT_S

PIECE_BYTES = 1 << 18


def opened(connection: fabric.Connection) -> paramiko.SFTPClient:
    """Return the file transfer of ``connection``; a request without an answer ends after SILENT_S seconds."""
    client = connection.sftp()
    channel = client.get_channel()
    assert channel
    channel.settimeout(SILENT_S)
    return client


def pieces(client: paramiko.SFTPClient, path: str, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of a file from ``start`` up to ``end``; fewer only when the file has become shorter."""
    with client.open(path, "rb") as file:
        file.seek(start)
        file.prefetch(end)
        while start < end and (piece := file.read(min(PIECE_BYTES, end - start))):
            start += len(piece)
            yield piece


def send(client: paramiko.SFTPClient, local: Path, path: str) -> None:
    """Upload a file to ``path`` atomically."""
    with local.open("rb") as content:
        client.putfo(content, f"{path}.part")
    client.posix_rename(f"{path}.part", path)


def extend(client: paramiko.SFTPClient, local: Path, path: str) -> Iterator[int]:
    """Append what ``path`` lacks of a file; yield its size so far, in bytes."""
    with local.open("rb") as content, client.open(path, "ab") as target:
        target.set_pipelined(True)
        there = target.stat().st_size or 0
        content.seek(there)
        yield there
        while piece := content.read(PIECE_BYTES):
            target.write(piece)
            there += len(piece)
            yield there
