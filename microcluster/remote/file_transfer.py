"""Files of a run between this computer and its machines: only missing ones, continued, each checked by its hash."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from agent.records.inventory import EVENTS, RECORD, VOCABULARY
from core.plain_text import note
from core.polling import SAY_EVERY_S
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.finished_data import SentFile
from microcluster.jobs.run_plan import DataPlan
from microcluster.jobs.run_spec import RunFolder, sent_folder
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all

INVENTORY = """run=$1; [ -e "$run/job.json" ] || exec echo null
[ -e "$run/agent/__main__.py" ] && exec python3 "$run/agent" records.inventory "$run" "$2"
echo "an earlier version of microcluster has made $run; fetch it with that version" >&2; exit 1"""
RUNS = 'for file in "$1"/*/job.json; do [ ! -e "$file" ] || basename "${file%/job.json}"; done'
INVENTORY_TIMEOUT_S = 3600.0
"""A checkpoint of 100 GB is hashed in minutes, and parts of it may come from other nodes before."""
LISTED = ("source", "path", "size", "sha256", "what")
TRIES = 2
HASH_TIMEOUT_S = 900.0
"""Reading 2 GB takes seconds, longer on a busy disk."""
MB = 10**6
IS_WHOLE = 'cd "$1" 2>/dev/null && [ "$(cat ID 2>/dev/null)" = "$2" ] && sha256sum -c --status SHA256SUMS'


@dataclass(frozen=True)
class RemoteFile:
    """One file worth bringing: where it lies there and where it belongs here, its length in bytes and its SHA-256.

    Attributes:
        there: for each node that has the same file, when it was written, in seconds since 1970.
    """

    source: str
    path: str
    size: int
    sha256: str
    what: str
    there: dict[str, int] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The node from which it is brought."""
        return next(iter(self.there), "")


@dataclass(frozen=True)
class Inventory:
    """What the nodes have of one training: ``files`` are fetched, ``left`` are too large for files that nobody has named.

    Attributes:
        step: of the newest whole checkpoint.
        silent: why the files of a node are not known, one sentence each.
    """

    run: str
    word: str
    step: int | None = None
    files: tuple[RemoteFile, ...] = ()
    left: tuple[RemoteFile, ...] = ()
    silent: tuple[str, ...] = ()


def runs_on(launcher: Host, cluster: ClusterFacts) -> list[str]:
    """Return the runs whose folders go with the machines, the stack's own first; those on a site's disk stay there."""
    own = str(cluster.run)
    if cluster.queue:
        return [own]
    found = launcher.run(("sh", "-c", RUNS, "runs", str(PurePosixPath(RunFolder(cluster).path).parent))).stdout.split()
    return [own, *(run for run in found if run != own)]


def inventory(
    hosts: Sequence[Host],
    cluster: ClusterFacts,
    run: str | None = None,
    *,
    hashed: bool = True,
    everything: bool = False,
) -> Inventory | None:
    """Return what the nodes have of a run, by default the stack's own; None if it never started.

    Args:
        hashed: whether to read every file; without it the hashes are empty.
        everything: whether large files that nobody has named come too.
    """
    data = RunFolder(cluster).plan.data if run in (None, cluster.run) else None
    folder = RunFolder(replace(cluster, run=run or cluster.run)).path
    request = {"first": True, "step": None, "hashed": hashed, "everything": everything}
    request |= {"data": data.folder if data else "", "names": list(data.needed) if data else []}
    first = _asked(hosts[0], folder, request)
    if first is None:
        return None
    request |= {"first": False, "step": first["step"], "names": []}

    def ask(host: Host) -> dict[str, Any]:
        try:
            return _asked(host, folder, request) or {}
        except RemoteError as error:
            return {"silent": str(error)}

    answers = {hosts[0].facts.name: first}
    for host, answer in zip(hosts[1:], on_all(hosts[1:], ask), strict=True):
        answers[host.facts.name] = answer
    silent = tuple(f"{name}: {one['silent']}" for name, one in answers.items() if one.get("silent"))
    files, left = _union(answers, "files"), _union(answers, "left")
    return Inventory(str(run or cluster.run), first["word"], first["step"], files, left, silent)


def _asked(host: Host, folder: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return what one node has."""
    argv = ("sh", "-c", INVENTORY, "inventory", folder, json.dumps(request))
    answer = json.loads(host.run(argv, timeout_s=INVENTORY_TIMEOUT_S).stdout)
    for one in (*answer["files"], *answer["left"]) if answer else ():
        if not _stays_inside(one["path"]):  # The machine's answer is not trusted.
            raise RemoteError(
                f"listing what {host} has: {one['path']!r} is outside the target folder. "
                "Nothing was downloaded from it. Check who else uses that machine, or make down."
            )
    return answer


def _union(answers: Mapping[str, Mapping[str, Any]], key: str) -> tuple[RemoteFile, ...]:
    """Return the files of all nodes; what several have alike comes once, and another file of the same name below its node's name."""
    union: dict[str, RemoteFile] = {}
    for node, answer in answers.items():
        for one in answer.get(key, ()):
            facts = {key: one[key] for key in LISTED}  # An earlier version, which has begun the run, lists more.
            file = RemoteFile(**facts, there={node: one["written"]})
            known = union.get(file.path)
            if known and (known.size, known.sha256) == (file.size, file.sha256):
                known.there.update(file.there)
                continue
            path = f"nodes/{node}/{file.path}" if known else file.path
            union[path] = replace(file, path=path)
    return tuple(union.values())


def results(found: Inventory) -> list[RemoteFile]:
    """Return what would be missed: not the records and curves of how it went, and not the data that it learned from."""
    return [file for file in (*found.files, *found.left) if file.what not in (RECORD, EVENTS, VOCABULARY)]


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


def send_data(hosts: Sequence[Host], cluster: ClusterFacts) -> bool:
    """Upload the job's data files from this computer; return whether that was needed.

    If any host already has the complete data, the launcher copies them from there.
    """
    data = cluster.data
    if data is None or data.path is None:
        return False
    planned = RunFolder(cluster).plan.data
    if any(on_all(hosts, lambda host: _has_data(host, planned))):
        return False
    for file in data.files:
        local = Path(data.path) if data.is_tar else Path(data.path) / file.name
        send(hosts[0], local, file, f"{sent_folder(planned, cluster.mount_point)}/{file.name}")
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
    for there in launcher.extend(local, part):
        if time.monotonic() - reported >= SAY_EVERY_S:
            reported = time.monotonic()
            so_far = f"{there // MB} of {file.size // MB} MB, {reported - began:.0f} s so far"
            note(f"{launcher.facts.name}: sending {local.name}: {so_far}")


def _sha256(host: Host, path: str) -> str:
    """Return the hash of a file on the host, or an empty text."""
    return host.run(("sha256sum", path), accept=(0, 1), timeout_s=HASH_TIMEOUT_S).stdout.partition(" ")[0]
