"""Downloads a run's files: only missing ones, each checked by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from microcluster.jobs import staging_plan
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host

INVENTORY = """run=$1; shift; [ -e "$run/job.json" ] || exec echo '[]'
[ -e "$run/agent/__main__.py" ] && exec python3 "$run/agent" inventory "$run" "$@"
echo "an earlier version of microcluster has made $run; fetch it with that version" >&2; exit 1"""
INVENTORY_TIMEOUT_S = 3600.0
"""A checkpoint of 100 GB is hashed in minutes, and parts of it may come from other nodes before."""
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
    """Return the run's files on the launcher; none if it never started."""
    cluster.require("run", "job")
    assert cluster.job
    data = staging_plan.data_of(cluster.job, cluster.mount_point)
    words = (data.folder, *data.needed) if data else ("",)
    done = launcher.run(
        ("sh", "-c", INVENTORY, "inventory", RunFolder(cluster).path, *words), timeout_s=INVENTORY_TIMEOUT_S
    )
    files = tuple(RemoteFile(**found) for found in json.loads(done.stdout))
    leading_out = [file.path for file in files if not _stays_inside(file.path)]
    if leading_out:  # The machine's answer is not trusted.
        raise RemoteError(
            f"listing what {launcher} has of run {cluster.run}: {leading_out[0]!r} is outside the target folder. "
            "Nothing was downloaded. Check who else uses that machine, or make down."
        )
    return files if any(file.what != "vocabulary" for file in files) else ()


def _stays_inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts


def download(host: Host, file: RemoteFile, folder: Path, report: Callable[[int], None]) -> bool:
    """Download the file into ``folder`` and check it; return whether it was missing.

    Args:
        report: called with each number of new bytes.
    """
    target = folder / file.path
    if _is_whole(target, file):
        report(file.size)
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    for _ in range(TRIES):
        _complete(host, file, partial, report)
        if _is_whole(partial, file):
            partial.replace(target)
            return True
        report(-partial.stat().st_size)
        partial.unlink()
    raise RemoteError(
        f"downloading {file.source} of {host}: it arrived {TRIES} times with a wrong hash. "
        "Check the machine's disk, then run the same command again."
    )


def _complete(host: Host, file: RemoteFile, partial: Path, report: Callable[[int], None]) -> None:
    """Continue a partial download."""
    with partial.open("ab") as sink:
        if sink.tell() > file.size:
            sink.truncate(0)
        report(sink.tell())
        for piece in host.pieces(file.source, sink.tell(), file.size):
            sink.write(piece)
            report(len(piece))


def _is_whole(path: Path, file: RemoteFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
