"""Bringing a run's files to this computer: what is there already is not brought again, and every file is checked by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from microcluster.jobs import staging_plan
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.host import Host, RemoteError

INVENTORY = """run=$1; shift; [ -e "$run/job.json" ] || exec echo '[]'
[ -e "$run/agent/__main__.py" ] && exec python3 "$run/agent" inventory "$run" "$@"
echo "an earlier version of microcluster has made $run; fetch it with that version" >&2; exit 1"""
INVENTORY_TIMEOUT_S = 600.0
"""Hashing two checkpoints of 850 MB takes seconds; a disk that is busy with training takes longer."""
TRIES = 2


@dataclass(frozen=True)
class RemoteFile:
    """One file worth bringing: where it lies there and where it belongs here, its length in bytes and its SHA-256.

    Attributes:
        step: of the newest checkpoint's files.
    """

    source: str
    path: str
    size: int
    sha256: str
    what: str
    step: int | None = None


def inventory(launcher: Host, cluster: ClusterFacts) -> tuple[RemoteFile, ...]:
    """List what the launcher has of the cluster's run; nothing when the run has never started."""
    cluster.require("run", "job")
    assert cluster.job
    data = staging_plan.data_of(cluster.job, cluster.mount_point)
    words = (data.folder, *data.needed) if data else ("",)
    done = launcher.run(
        ("sh", "-c", INVENTORY, "inventory", RunFolder(cluster).path, *words), timeout_s=INVENTORY_TIMEOUT_S
    )
    files = tuple(RemoteFile(**found) for found in json.loads(done.stdout))
    leading_out = [file.path for file in files if not _stays_inside(file.path)]
    if leading_out:  # The machine is rented: it may by now be somebody else's.
        raise RemoteError(
            f"listing what {launcher} has of run {cluster.run}: {leading_out[0]!r} leads out of the folder that it would come to. "
            "Nothing was brought. See who else is on that machine, or make down."
        )
    return files if any(file.what != "vocabulary" for file in files) else ()


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts


def bring(host: Host, file: RemoteFile, folder: Path, tell: Callable[[int], None]) -> bool:
    """Let ``folder`` hold the file, whole and checked; return whether anything had to travel.

    Args:
        tell: called with each number of bytes that is there from now on.
    """
    target = folder / file.path
    if _is_whole(target, file):
        tell(file.size)
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    for _ in range(TRIES):
        _complete(host, file, partial, tell)
        if _is_whole(partial, file):
            partial.replace(target)
            return True
        tell(-partial.stat().st_size)
        partial.unlink()
    raise RemoteError(
        f"bringing {file.source} of {host} home: it arrived {TRIES} times with another hash than it has there. "
        "See that its disk is sound, then run the same command again."
    )


def _complete(host: Host, file: RemoteFile, partial: Path, tell: Callable[[int], None]) -> None:
    """Go on where an earlier try was cut off."""
    with partial.open("ab") as sink:
        if sink.tell() > file.size:
            sink.truncate(0)
        tell(sink.tell())
        for piece in host.pieces(file.source, sink.tell(), file.size):
            sink.write(piece)
            tell(len(piece))


def _is_whole(path: Path, file: RemoteFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
