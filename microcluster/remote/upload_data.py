"""Uploads finished data to the launcher; continues partial uploads and checks every file by its hash."""

import time
from collections.abc import Sequence
from pathlib import Path

from core.plain_text import note
from core.waiting import SAY_EVERY_S
from microcluster.jobs import staging_plan
from microcluster.jobs.cluster_facts import ClusterFacts, SentFile
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all

HASH_TIMEOUT_S = 900.0
"""Reading 2 GB takes seconds, longer on a busy disk."""
TRIES = 2
MB = 10**6
IS_WHOLE = 'cd "$1" 2>/dev/null && [ "$(cat ID 2>/dev/null)" = "$2" ] && sha256sum -c --status SHA256SUMS'


def send_data(hosts: Sequence[Host], cluster: ClusterFacts) -> bool:
    """Upload the job's data files from this computer; return whether that was needed.

    If any host already has the complete data, the launcher copies them from there.
    """
    assert cluster.job
    data = cluster.job.data
    if data is None or data.path is None or any(on_all(hosts, lambda host: _has_data(host, cluster))):
        return False
    folder = staging_plan.sent_folder(cluster.job, cluster.mount_point)
    for file in data.files:
        local = Path(data.path) if data.is_tar else Path(data.path) / file.name
        _send(hosts[0], local, file, f"{folder}/{file.name}")
    return True


def _has_data(host: Host, cluster: ClusterFacts) -> bool:
    assert cluster.job
    data = staging_plan.data_of(cluster.job, cluster.mount_point)
    assert data
    argv = ("sh", "-c", IS_WHOLE, "is-whole", data.folder, data.id)
    return host.run(argv, accept=range(256), timeout_s=HASH_TIMEOUT_S).exit_code == 0


def _send(launcher: Host, local: Path, file: SentFile, path: str) -> None:
    """Upload the file to ``path`` and check its hash."""
    if _sha256(launcher, path) == file.sha256:
        return
    if not local.is_file() or local.stat().st_size != file.size:
        raise RemoteError(
            f"sending {local} to {launcher}: it is missing or has changed since the stack was read, and no machine "
            "has the data. Restore it, or change job.data, then run the same command again."
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


def _extend(launcher: Host, local: Path, file: SentFile, part: str) -> None:
    began = reported = time.monotonic()
    for there in launcher.extend(local, part):
        if time.monotonic() - reported >= SAY_EVERY_S:
            reported = time.monotonic()
            so_far = f"{there // MB} of {file.size // MB} MB, {reported - began:.0f} s so far"
            note(f"{launcher.facts.name}: sending {local.name}: {so_far}")


def _sha256(host: Host, path: str) -> str:
    """Return the hash of a file on the host, or an empty text."""
    return host.run(("sha256sum", path), accept=(0, 1), timeout_s=HASH_TIMEOUT_S).stdout.partition(" ")[0]
