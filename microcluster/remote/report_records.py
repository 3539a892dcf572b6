"""Reads a run's records from its launcher for a report: events, texts, sizes of files and data."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.records import event_summary
from microcluster.analysis.records import parse
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_plan import DataPlan
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.host import Host

COUNT_TIMEOUT_S = 300.0
"""Counting the lines of 2 GB takes seconds, longer on a busy disk."""
EVENT_FILES = (event_summary.EVENTS, "samples.jsonl")


@dataclass(frozen=True)
class DataFile:
    """One data file; ``size`` in bytes."""

    name: str
    lines: int
    size: int


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint on the launcher.

    Attributes:
        best: an evaluation's model, and not one of the regular checkpoints.
        sizes: bytes by kind of file: data, meta, index.
        written: seconds since 1970.
        flaw: why it cannot be used, or an empty text.
    """

    name: str
    step: int
    best: bool
    sizes: Mapping[str, int]
    written: float
    flaw: str

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


@dataclass(frozen=True)
class Records:
    """``files`` are (path below the run's folder, bytes); ``learning_rate`` is (step, value) as recorded by the trainer."""

    events: tuple[Mapping[str, Any], ...]
    config: str
    files: tuple[tuple[str, int], ...]
    data: tuple[DataFile, ...]
    checkpoints: tuple[Checkpoint, ...] = ()
    learning_rate: tuple[tuple[int, float], ...] = ()
    malformed: int = 0
    """Lines of the event files that could not be read."""


def read(launcher: Host, cluster: ClusterFacts) -> Records:
    """Read the records; missing ones are empty."""
    folder, plan = RunFolder(cluster).path, RunFolder(cluster).plan
    parsed = [parse(launcher.read(f"{folder}/{name}") or "") for name in EVENT_FILES]
    rates = []
    for metric in plan.metrics:
        if metric.scalar:
            rates += _asked(launcher, folder, "readers.scalars", f"{folder}/logdir", metric.scalar)
    return Records(
        events=tuple(event for found, _ in parsed for event in found),
        config=launcher.read(f"{folder}/{plan.config_file}") or "",
        files=tuple(_files(launcher, folder)),
        data=tuple(_data(launcher, plan.data)),
        checkpoints=tuple(
            Checkpoint(one["name"], one["step"], one["best"], one["bytes"], one["t"], one["flaw"])
            for one in _asked(launcher, folder, "checkpoints.listing", folder)
        ),
        learning_rate=tuple((step, rate) for step, rate in rates),
        malformed=sum(count for _, count in parsed),
    )


def _asked(launcher: Host, folder: str, program: str, *words: str) -> list[Any]:
    """Return the list that a module of the run's agent prints."""
    return json.loads(launcher.run(("python3", f"{folder}/agent", program, *words), timeout_s=COUNT_TIMEOUT_S).stdout)


def _files(launcher: Host, folder: str) -> Iterator[tuple[str, int]]:
    """List the run's files, without the agent and without what it copies while it grows."""
    left_out = ("(", "-path", f"{folder}/agent", "-o", "-name", "still", ")", "-prune")
    argv = ("find", folder, *left_out, "-o", "-type", "f", "-printf", "%P %s\\n")
    for line in sorted(launcher.run(argv, accept=(0, 1)).stdout.splitlines()):
        path, _, size = line.rpartition(" ")
        yield path, int(size)


def _data(launcher: Host, data: DataPlan | None) -> Iterator[DataFile]:
    if data is None:
        return
    argv = ("wc", "-lc", *(f"{data.folder}/{name}" for name in data.files))
    for line in launcher.run(argv, accept=(0, 1), timeout_s=COUNT_TIMEOUT_S).stdout.splitlines():
        lines, size, path = line.split(maxsplit=2)
        if path != "total":
            yield DataFile(path.rpartition("/")[2], int(lines), int(size))
