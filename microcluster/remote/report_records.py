"""Reads a run's records from its launcher for a report: events, texts, sizes of files and data."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import FailFast, Field, OnErrorOmit, TypeAdapter

from agent import IN_CONTAINER
from agent.run import event_summary
from microcluster.analysis.records import Number, Seconds, Whole, parse
from microcluster.analysis.run_state import Text
from microcluster.core.plain_text import note
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote.answers import read_answer
from microcluster.remote.host import Host

LIST_TIMEOUT_S = 300.0
"""Listing checkpoints and reading event files takes seconds, longer on a busy disk."""
EVENT_BYTES = 6 * 10**6
"""The most that is read of an event file: about 60,000 lines."""
END = """[ -f "$1" ] || exit 0; size=$(stat -c %s "$1"); echo "$size"
[ "$size" -gt "$2" ] || exec cat "$1"
head -c $(($2 / 6)) "$1" | sed '$d'; tail -c $(($2 - $2 / 6)) "$1" | sed 1d"""
SIZE = re.compile("[0-9]{1,15}")
EVENT_FILES = (event_summary.EVENTS, "samples.jsonl")


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint on the launcher, as the agent lists it.

    Attributes:
        best: an evaluation's model, and not one of the regular checkpoints.
        sizes: bytes by kind of file: data, meta, index.
        written: seconds since 1970.
        flaw: why it cannot be used, or an empty text.
    """

    name: Text
    step: Whole
    best: bool
    sizes: Annotated[dict[str, Whole], Field(validation_alias="bytes")]
    written: Annotated[Seconds, Field(validation_alias="t")]
    flaw: Text

    @property
    def size(self) -> int:
        return sum(self.sizes.values())


RATES = TypeAdapter(list[OnErrorOmit[tuple[Whole, Number]]])
CHECKPOINTS = TypeAdapter(Annotated[list[Checkpoint], FailFast()])


@dataclass(frozen=True)
class Records:
    """``files`` are (path below the run's folder, bytes); ``learning_rate`` is (step, value) as recorded by the trainer."""

    events: tuple[Mapping[str, Any], ...]
    config: str
    files: tuple[tuple[str, int], ...]
    checkpoints: tuple[Checkpoint, ...] = ()
    learning_rate: tuple[tuple[int, float], ...] = ()
    malformed: int = 0
    """Lines of the event files that could not be read."""


def read(launcher: Host, cluster: ClusterFacts) -> Records:
    """Read the records; missing ones are empty."""
    run = RunFolder(cluster)
    folder = run.path
    parsed = [parse(_end_of(launcher, f"{folder}/{name}")) for name in EVENT_FILES]
    rates: list[tuple[int, float]] = []
    for metric in run.document.logs.metrics:
        if metric.scalar:
            rates += _asked(RATES, launcher, folder, "readers.scalars", f"{folder}/logdir", metric.scalar)
    return Records(
        events=tuple(event for found, _ in parsed for event in found),
        config=launcher.read(f"{folder}/{cluster.job.config_file}") or "",
        files=tuple(_files(launcher, folder)),
        checkpoints=tuple(_asked(CHECKPOINTS, launcher, folder, "checkpoints.listing", folder)),
        learning_rate=tuple(rates),
        malformed=sum(count for _, count in parsed),
    )


def _end_of(launcher: Host, path: str) -> str:
    """Return an event file, of a long one beginning and end in whole lines; `fab fetch` brings all of it."""
    done = launcher.run(("sh", "-c", END, "end", path, str(EVENT_BYTES)), answer_bytes=EVENT_BYTES + 99)
    size, _, text = done.stdout.partition("\n")
    if size.isdecimal() and int(size[:15]) > EVENT_BYTES:
        note(
            f"{path} of {launcher.facts.name} has {int(size[:15]) // 10**6:,} MB; the report reads {EVENT_BYTES // 10**6} MB of it"
        )
    return text


def _asked(kind: TypeAdapter[list[Any]], launcher: Host, folder: str, program: str, *words: str) -> list[Any]:
    """Return the list that a module of the run's agent prints."""
    done = launcher.run(("python3", f"{folder}/agent", program, *words), timeout_s=LIST_TIMEOUT_S)
    return read_answer(kind, done.stdout, f"asking {launcher} for the run's {program.partition('.')[0]}")


def _files(launcher: Host, folder: str) -> Iterator[tuple[str, int]]:
    """List the run's files, without the agent and without what it copies while it grows; those of the machine before the container's."""
    places = (f"{folder}/{IN_CONTAINER}/", folder)
    left_out = [word for place in places for word in ("-path", f"{place.rstrip('/')}/agent", "-o")]
    argv = ("find", *places, "(", *left_out, "-name", "still", ")", "-prune", "-o", "-type", "f", "-printf", "%P %s\\n")
    done = launcher.run(("sh", "-c", '"$@" | head -c 3000000', "files", *argv))
    lines = (line.rpartition(" ") for line in done.stdout.splitlines())
    yield from sorted({path: int(size) for path, _, size in lines if SIZE.fullmatch(size)}.items())
