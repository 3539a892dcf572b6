"""What a run has left behind on its launcher, for a report: events, texts, the sizes of its files and of its data."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from launchers import openseq2seq
from launchers.payload import Payload
from launchers.run_folder import RunFolder
from remote.host import Host

COUNT_TIMEOUT_S = 300.0
"""Counting the lines of 2 GB takes seconds, on a busy disk more."""

EVENT_FILES = ("progress.jsonl", "samples.jsonl")


@dataclass(frozen=True)
class DataFile:
    """One file that the ranks read: its name, lines and bytes."""

    name: str
    lines: int
    size: int


@dataclass(frozen=True)
class Records:
    """``files`` are paths below the run's folder with their bytes."""

    events: tuple[Mapping[str, Any], ...]
    config: str
    preflight: str
    files: tuple[tuple[str, int], ...]
    data: tuple[DataFile, ...]


def read(launcher: Host, payload: Payload) -> Records:
    """Read what is there; what is missing is empty."""
    payload.require("run", "job")
    folder = RunFolder(payload).path
    return Records(
        # The samples of the machines have a file of their own, because there are too many for those who only look.
        events=tuple(_events("\n".join(launcher.read(f"{folder}/{name}") or "" for name in EVENT_FILES))),
        config=launcher.read(f"{folder}/config.py") or "",
        preflight=launcher.read(f"{folder}/preflight.json") or "",
        files=tuple(_files(launcher, folder)),
        data=tuple(_data(launcher, payload)),
    )


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.split("\n"):
        with contextlib.suppress(ValueError):  # The last line may just be being written.
            yield json.loads(line)


def _files(launcher: Host, folder: str) -> Iterator[tuple[str, int]]:
    """List what the run has made; what Python compiles, and the still pictures of what grows, say nothing of it."""
    inner = ("(", "-name", "__pycache__", "-o", "-name", "still", ")", "-prune")
    argv = ("find", folder, *inner, "-o", "-type", "f", "-printf", "%s %P\\n")
    listed = launcher.run(argv, accept=(0, 1)).stdout
    for line in sorted(listed.splitlines(), key=lambda line: line.partition(" ")[2]):
        size, _, path = line.partition(" ")
        yield path, int(size)


def _data(launcher: Host, payload: Payload) -> Iterator[DataFile]:
    assert payload.job
    folder = openseq2seq.data_folder(payload.job, payload.mount_point)
    names = openseq2seq.DATASETS[payload.job.dataset].files
    argv = ("wc", "-lc", *(f"{folder}/{name}" for name in names))
    for line in launcher.run(argv, accept=(0, 1), timeout_s=COUNT_TIMEOUT_S).stdout.splitlines():
        lines, size, path = line.split(maxsplit=2)
        if path != "total":
            yield DataFile(path.rpartition("/")[2], int(lines), int(size))
