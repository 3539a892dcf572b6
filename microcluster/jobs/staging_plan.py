"""What the staging program on the launcher reads: how a job's data are made or unpacked, and what they have to be in the end."""

from __future__ import annotations

from typing import Any

from microcluster.jobs import openseq2seq
from microcluster.jobs.cluster_facts import Job
from microcluster.jobs.datasets import DATASETS, LARGEST_FINISHED_BYTES


def work_folder(job: Job, mount_point: str) -> str:
    """Return where the launcher keeps what is only on the way to being the data."""
    return f"{mount_point}/staging/{openseq2seq.data_id(job)}"


def sent_folder(job: Job, mount_point: str) -> str:
    """Return where the launcher gets what comes from the operator's computer."""
    return f"{work_folder(job, mount_point)}/sent"


def plan(job: Job, mount_point: str) -> dict[str, Any]:
    """Return the plan of a job's data."""
    data = DATASETS[job.dataset]
    wanted = {
        "id": openseq2seq.data_id(job),
        "folder": openseq2seq.data_folder(job, mount_point),
        "work": work_folder(job, mount_point),
        "files": list(data.files),
        "optional": list(data.optional),
        "pairs": [list(pair) for pair in data.pairs],
        "vocabulary": [data.vocabulary, data.vocabulary_size],
    }
    return {**wanted, **_ways(job, mount_point)}


def _ways(job: Job, mount_point: str) -> dict[str, Any]:
    """Return where the data come from."""
    data = job.data
    if data is None:
        return {"kind": "recipe", **DATASETS[job.dataset].recipe}
    sent = sent_folder(job, mount_point)
    if not data.is_tar:
        files = [{"name": f.name, "path": f"{sent}/{f.name}", "sha256": f.sha256} for f in data.files]
        return {"kind": "files", "sent": files}
    address = data.address or f"file://{sent}/{data.files[0].name}"
    pinned = data.sha256 or (data.files[0].sha256 if data.files else None)
    archive = {"name": "finished.tar", "address": address, "most_bytes": LARGEST_FINISHED_BYTES, "sha256": pinned}
    return {"kind": "tar", "archives": [archive]}
