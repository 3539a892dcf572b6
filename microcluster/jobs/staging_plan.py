"""What the staging program on the launcher reads: how a job's data are made or unpacked, and what they have to be in the end."""

from typing import Any

from microcluster.jobs.cluster_facts import Job
from microcluster.jobs.kind import kind_of
from microcluster.jobs.values import DataPlan


def data_of(job: Job, mount_point: str) -> DataPlan | None:
    """Return the job's data, or None for a program that brings its own."""
    return kind_of(job.kind).data(job, mount_point)


def sent_folder(job: Job, mount_point: str) -> str:
    """Return where the launcher gets what comes from the operator's computer."""
    data = data_of(job, mount_point)
    assert data
    return f"{_work_folder(data, mount_point)}/sent"


def plan(job: Job, mount_point: str) -> dict[str, Any]:
    """Return the plan of a job's data."""
    data = data_of(job, mount_point)
    assert data
    wanted = {
        "id": data.id,
        "folder": data.folder,
        "work": _work_folder(data, mount_point),
        "files": list(data.files),
        "optional": list(data.optional),
        "pairs": [list(pair) for pair in data.pairs],
        "vocabulary": list(data.vocabulary) if data.vocabulary else None,
        "words": list(data.words) if data.words else None,
    }
    return {**wanted, **_ways(job, data, sent_folder(job, mount_point))}


def _work_folder(data: DataPlan, mount_point: str) -> str:
    """Return where the launcher keeps what is only on the way to being the data."""
    return f"{mount_point}/staging/{data.id}"


def _ways(job: Job, plan: DataPlan, sent: str) -> dict[str, Any]:
    """Return where the data come from."""
    data = job.data
    if data is None:
        return {"kind": "recipe", **plan.recipe}
    if not data.is_tar:
        files = [{"name": f.name, "path": f"{sent}/{f.name}", "sha256": f.sha256} for f in data.files]
        return {"kind": "files", "sent": files}
    address = data.address or f"file://{sent}/{data.files[0].name}"
    pinned = data.sha256 or (data.files[0].sha256 if data.files else None)
    archive = {"name": "finished.tar", "address": address, "most_bytes": plan.largest_bytes, "sha256": pinned}
    return {"kind": "tar", "archives": [archive]}
