"""Files of a run between this computer and its machines: only missing ones, continued, each checked by its hash."""

import hashlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter

from agent.machine import is_locked
from microcluster.core.files import locked
from microcluster.core.plain_text import note, printable
from microcluster.core.polling import SAY_EVERY_S, wait_until
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.finished_data import DataPlan, SentFile
from microcluster.jobs.run_spec import RunFolder, sent_folder
from microcluster.remote.answers import Size, read_answer
from microcluster.remote.connection import reason
from microcluster.remote.errors import RemoteError, TooSlowError, UnreachableError
from microcluster.remote.host import Host
from microcluster.remote.inventory import RemoteFile, by_want
from microcluster.remote.parallel import on_all
from microcluster.remote.tree_transfer import send_tree

TRIES = 3
HASH_TIMEOUT_S = 900.0
"""Reading 2 GB takes seconds, longer on a busy disk."""
MB = 10**6
TOGETHER, TOGETHER_BYTES = 1000, 128 << 10
"""Small files that one command brings, and the most bytes of each: a command for each file takes longer than its bytes."""
BRING = """import sys
for row in sys.stdin.buffer.read().split(b"\\0"):
    size, _, path = row.partition(b":")
    try:
        with open(path, "rb") as file:
            found = file.read(int(size))
    except OSError:
        found = b""
    sys.stdout.buffer.write(found + bytes(int(size) - len(found)))
"""
"""Program that prints the listed number of bytes of each file on standard input; a shortened file is filled up and fails its hash."""
ONE_BY_ONE_S = 3600.0
"""The longest that small files of a node may take one by one, whose list may be endless; those that are left are named."""
TOO_MANY = f"Small files took more than {ONE_BY_ONE_S / 3600:g} h one by one. Fetch again for the rest."
TURN_S = 6 * 3600.0
"""A fetch of 100 GB takes hours; one that is stuck holds up the next no longer."""
SPARE_BYTES = 1000 * MB
"""Free space that a fetch leaves on this computer's disk: the guard and Pulumi write there too."""
DESCRIBE = 'size=$(stat -L -c %s "$1") && printf "[%s, \\"%.64s\\"]" "$size" "$(head -c "$size" "$1" | sha256sum)"'
DESCRIBED = TypeAdapter(tuple[Size, Annotated[str, Field(max_length=64)]])
IS_WHOLE = 'cd "$1" 2>/dev/null && [ "$(cat ID 2>/dev/null)" = "$2" ] && sha256sum -c --status SHA256SUMS'


@dataclass
class Fetched:
    """Result of a fetch: files that are here, paths of the new ones, and the reason of each failure."""

    files: list[RemoteFile] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def fetch_files(
    hosts: Mapping[str, Host], files: Iterable[RemoteFile], folder: Path, report: Callable[[int], None]
) -> Fetched:
    """Download files into a folder, the most wanted first; each that fails is named, and the others come.

    One at a time fetches into a folder; another waits for it.

    Args:
        report: called with each number of new bytes.

    Raises:
        NotReadyError: the other one was not over in TURN_S.
    """
    fetched, silent, spent_s = Fetched(), dict[str, str](), Counter[str]()
    lock = folder.with_name(f".{folder.name}.lock")

    def wait(holder: str) -> None:
        whose = f"the fetch of {holder or 'another process'}, which writes to {folder}"
        wait_until(whose, lambda: not is_locked(str(lock)), timeout_s=TURN_S)

    folder.mkdir(parents=True, exist_ok=True)
    with locked(lock, wait) as holder:
        holder.write(f"process {os.getpid()} since {datetime.now(UTC):%H:%M:%S} UTC")
        holder.flush()
        by_priority = sorted(files, key=by_want)
        for name, host in hosts.items():
            try:
                _bring_small(host, [each for each in by_priority if each.node == name], folder)
            except TooSlowError as error:
                silent[name] = str(error)
            except (RemoteError, OSError):
                continue  # Whatever went wrong with a file, `download` finds and mends.
        for file in by_priority:
            began = time.monotonic()
            try:
                if file.node in silent:
                    raise RemoteError(silent[file.node])
                if spent_s[file.node] > ONE_BY_ONE_S and file.size <= TOGETHER_BYTES:
                    raise RemoteError(TOO_MANY)
                arrived, is_new = download(hosts[file.node], file, folder, report)
            except UnreachableError as error:
                silent[file.node] = fetched.failed[file.path] = str(error)
            except (RemoteError, OSError) as error:
                fetched.failed[file.path] = str(error) if isinstance(error, RemoteError) else f"{reason(error)}."
            else:
                fetched.files.append(arrived)
                fetched.new += [file.path] if is_new else []
            if file.size <= TOGETHER_BYTES:
                spent_s[file.node] += time.monotonic() - began
        if not fetched.failed:
            shutil.rmtree(_partials(folder), ignore_errors=True)
    fetched.files.sort(key=lambda each: each.path)
    return fetched


def _bring_small(host: Host, files: Sequence[RemoteFile], folder: Path) -> None:
    """Bring small files many at a time; `download` makes empty ones, which need no command."""
    small = [file for file in files if 0 < file.size <= TOGETHER_BYTES and not (folder / file.local).exists()]
    _partials(folder).mkdir(exist_ok=True)
    for at in range(0, len(small), TOGETHER):
        if shutil.disk_usage(folder).free < SPARE_BYTES:
            return
        batch, unread, is_true = small[at : at + TOGETHER], bytearray(), False
        names = b"\0".join(os.fsencode(f"{file.size}:{file.source}") for file in batch)
        for piece in host.output(("python3", "-c", BRING), f"reading {len(batch)} files of {host}", stdin=names):
            unread += piece
            while batch and len(unread) >= batch[0].size:
                file = batch.pop(0)
                content = bytes(unread[: file.size])
                is_true |= hashlib.sha256(content).hexdigest() == file.sha256
                _partial(folder, file).write_bytes(content)
                del unread[: file.size]
            if not batch:
                break
        if not is_true:  # The list is of before, or a lie.
            return


def _partial(folder: Path, file: RemoteFile) -> Path:
    """Return where a file is as long as it has not arrived whole."""
    return _partials(folder) / hashlib.sha256(file.local.encode()).hexdigest()[:32]


def _partials(folder: Path) -> Path:
    """Return the folder of what has not arrived whole; the next fetch continues it."""
    return folder.with_name(f".{folder.name}.partial")


def download(host: Host, file: RemoteFile, folder: Path, report: Callable[[int], None]) -> tuple[RemoteFile, bool]:
    """Download the file into ``folder`` and check it; return it as it arrived, and whether it was missing.

    A file that the program rewrites meanwhile is described anew and read again.

    Args:
        report: called with each number of new bytes.

    Raises:
        RemoteError: there is no room for it, a link leads out of the folder, or it arrived otherwise each time.
    """
    target = folder / file.local
    if target.is_symlink() or not target.resolve().is_relative_to(folder.resolve()):
        raise RemoteError(f"writing {target}: a link leads out of the folder. Remove the link, then fetch again.")
    if _is_whole(target, file):
        report(file.size)
        return file, False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _partial(folder, file)
    partial.parent.mkdir(exist_ok=True)
    for _ in range(TRIES):
        _complete(host, file, partial, report)
        if _is_whole(partial, file):
            partial.replace(target)
            return file, True
        report(-partial.stat().st_size)
        partial.unlink()
        file = _described(host, file)
    raise RemoteError(
        f"downloading {printable(file.source)} of {host}: it arrived {TRIES} times with a wrong hash. Fetch again when the program does "
        "not write it; if that never helps, check the machine's disk."
    )


def _complete(host: Host, file: RemoteFile, partial: Path, report: Callable[[int], None]) -> None:
    """Continue a partial download."""
    with partial.open("ab") as sink:
        if sink.tell() > file.size:
            sink.truncate(0)
        size_here = sink.tell()
        free = shutil.disk_usage(partial.parent).free - SPARE_BYTES
        if file.size - size_here > free:
            raise RemoteError(
                f"downloading {printable(file.source)} of {host}: it needs {(file.size - size_here) // MB:,} MB more, and {max(free, 0) // MB:,} MB "
                f"are free in {partial.parent} beside {SPARE_BYTES // MB:,} MB that stay free. Make room there, then fetch again."
            )
        report(size_here)
        if size_here == file.size:
            return
        for piece in host.pieces(file.source, size_here, file.size):
            sink.write(piece)
            report(len(piece))


def _described(host: Host, file: RemoteFile) -> RemoteFile:
    """Return the file with the length and the hash that it has now."""
    answer = host.run(("sh", "-c", DESCRIBE, "describe", file.source), timeout_s=HASH_TIMEOUT_S).stdout
    size, sha256 = read_answer(DESCRIBED, answer, f"looking at {printable(file.source)} of {host} again")
    return replace(file, size=size, sha256=sha256)


def _is_whole(path: Path, file: RemoteFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256


def send_data(hosts: Sequence[Host], cluster: ClusterFacts) -> bool:
    """Upload the job's data files from this computer; return whether that was needed.

    If any host already has the complete data, the launcher copies them from there.
    """
    data = cluster.data
    if data is None or data.path is None:
        return False
    planned = RunFolder(cluster).data
    if any(on_all(hosts, lambda host: _has_data(host, planned))):
        return False
    if data.tree:
        send_tree(hosts[0], data.tree, sent_folder(planned.id, cluster.mount_point))
    for file in data.files:
        local = Path(data.path) if data.is_tar else Path(data.path) / file.name
        send(hosts[0], local, file, f"{sent_folder(planned.id, cluster.mount_point)}/{file.name}")
    return True


def _has_data(host: Host, data: DataPlan) -> bool:
    argv = ("sh", "-c", IS_WHOLE, "is-whole", data.folder, data.id)
    return host.run(argv, accept=range(256), timeout_s=HASH_TIMEOUT_S).exit_code == 0


def send(launcher: Host, local: Path, file: SentFile | RemoteFile, path: str) -> None:
    """Upload the file to ``path`` and check its hash, unless it is there."""
    if _sha256(launcher, path) == file.sha256:
        return
    if not local.is_file() or local.stat().st_size != file.size:
        raise RemoteError(
            f"sending {local} to {launcher}: it is missing or has changed since it was read, and no machine has the "
            "data. Restore it, or name other data, then run the same command again."
        )
    part = f"{path}.part"
    for _ in range(TRIES):
        _extend(launcher, local, file, part)
        if _sha256(launcher, part) == file.sha256:
            launcher.run(("mv", "-f", part, path))
            return
        launcher.run(("rm", "-f", part))
    raise RemoteError(
        f"sending {local} to {launcher}: it arrived {TRIES} times with a wrong hash. Check "
        "that no program writes to it, then run the same command again."
    )


def _extend(launcher: Host, local: Path, file: SentFile | RemoteFile, part: str) -> None:
    began = reported = time.monotonic()
    for size_there in launcher.extend(local, part):
        if time.monotonic() - reported >= SAY_EVERY_S:
            reported = time.monotonic()
            so_far = f"{size_there // MB} of {file.size // MB} MB, {reported - began:.0f} s so far"
            note(f"{launcher.facts.name}: sending {local.name}: {so_far}")


def _sha256(host: Host, path: str) -> str:
    """Return the hash of a file on the host, or an empty text."""
    return host.run(("sha256sum", path), accept=(0, 1), timeout_s=HASH_TIMEOUT_S).stdout.partition(" ")[0]
