"""Inventory of a run's files on the nodes: one list of all answers, each row checked by itself against our limits."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path, PurePosixPath
from sys import intern
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agent.records import inventory_rows
from agent.records.inventory import (
    BEST,
    CHECKPOINT,
    EVENTS,
    HALF,
    KEPT,
    LARGE,
    NEWEST,
    PROGRAM,
    PUT_ASIDE,
    RECORD,
    SMALL,
    SMALL_BYTES,
    SMALL_FILES,
    SMALL_TOTAL_BYTES,
    SUSPECTED,
    VOCABULARY,
)
from agent.run.document import LARGEST_STEP
from microcluster.core.local_name import local_name
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import HASH_DIGITS, RunFolder
from microcluster.remote.answers import Size, read_answer, reason_of
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.parallel import on_all

RUNS = 'for file in "$1"/*/job.json; do [ ! -e "$file" ] || basename "${file%/job.json}"; done'
RUN = re.compile(f"[0-9a-f]{{{HASH_DIGITS}}}")
INVENTORY_TIMEOUT_S = 3600.0
"""A checkpoint of 100 GB is hashed in minutes, and parts of it may come from other nodes before."""
MOST_RUNS, ROW_BYTES = 1000, 32 << 10
MOST_ROWS, MOST_ROWS_BESIDE, BYTES_A_ROW = 101_000, 20_000, 350
"""Rows of the first node, which has the checkpoints, and of all others together; each with so many bytes on average."""
RANK = (
    *(BEST, NEWEST, SUSPECTED, KEPT, CHECKPOINT, PUT_ASIDE),
    *(RECORD, VOCABULARY, EVENTS, SMALL, HALF, LARGE, PROGRAM),
)
"""Kinds of files, the most wanted first."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file worth bringing: where it lies there and where it belongs here, its length in bytes and its SHA-256.

    Attributes:
        there: for each node that has the same file, when it was written, in seconds since 1970.
        here: its path below the folder here, where that is another than ``path``: not every name can stand on this computer.
        suspicion: what speaks against the checkpoint that it is a part of.
    """

    source: str
    path: str
    size: int
    sha256: str
    what: str
    there: dict[str, int] = field(default_factory=dict)
    here: str = ""
    suspicion: str = ""

    @property
    def node(self) -> str:
        """The node from which it is brought."""
        return next(iter(self.there), "")

    @property
    def local(self) -> str:
        """The path below the folder on this computer."""
        return self.here or self.path


@dataclass(frozen=True)
class Inventory:
    """Files of one training on the nodes. ``files`` are fetched; ``left`` are fetched only by name, because they are large.

    Attributes:
        step: of the newest whole checkpoint.
        silent: why the files of a node are not known, or not all of them, one sentence each.
        links: links in the log folder, with where they lead; none is made here.
    """

    run: str
    word: str
    step: int | None = None
    files: tuple[RemoteFile, ...] = ()
    left: tuple[RemoteFile, ...] = ()
    silent: tuple[str, ...] = ()
    links: dict[str, str] = field(default_factory=dict)


class Head(BaseModel, strict=True):
    """The first row of an answer."""

    word: Annotated[str, Field(max_length=64)] | None = ""
    step: Annotated[int, Field(ge=0, lt=LARGEST_STEP)] | None = None
    silent: Annotated[str, Field(max_length=1000)] | None = ""


class Row(BaseModel, strict=True):
    """A line of the answer that names a file."""

    list: Literal["files", "left"]
    path: Annotated[str, Field(max_length=ROW_BYTES)]
    source: Annotated[str, Field(max_length=ROW_BYTES)]
    size: Size
    sha256: Annotated[str, Field(pattern="^([0-9a-f]{64})?$")]
    what: Literal[RANK]  # type: ignore[valid-type]
    written: Annotated[int, Field(gt=-(10**11), lt=10**11)]
    suspicion: Annotated[str, Field(max_length=1000)] = ""


class Link(BaseModel, strict=True):
    """A link, which is only noted."""

    list: Literal["links"]
    path: Annotated[str, Field(max_length=ROW_BYTES)]
    target: Annotated[str, Field(max_length=ROW_BYTES)]


HEAD, ROW = TypeAdapter(Head | None), TypeAdapter(Annotated[Row | Link, Field(discriminator="list")])


@dataclass
class _Answer:
    """Answer of one node."""

    head: Head | None = None
    files: list[RemoteFile] = field(default_factory=list)
    left: list[RemoteFile] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)
    """Reasons of the rows that were left out."""

    @property
    def silent(self) -> str:
        if self.odd:
            return f"{len(self.odd)} of the files that it lists were left out; the last: {self.odd[-1]}"
        return (self.head.silent if self.head else "") or ""


def runs_on(launcher: Host, cluster: ClusterFacts) -> list[str]:
    """Return the runs whose folders go with the machines, the stack's own first; those on a site's disk stay there."""
    own = str(cluster.run)
    if cluster.queue:
        return [own]
    found = launcher.run(("sh", "-c", RUNS, "runs", str(PurePosixPath(RunFolder(cluster).path).parent))).stdout.split()
    return [own, *(run for run in found if run != own and RUN.fullmatch(run))][:MOST_RUNS]


def inventory(
    hosts: Sequence[Host],
    cluster: ClusterFacts,
    run: str | None = None,
    *,
    hashed: bool = True,
    everything: bool = False,
) -> Inventory | None:
    """Return the files of a run on the nodes, by default the stack's own run; None if it never started.

    Args:
        hashed: whether to read every file; without it the hashes are empty.
        everything: whether large files that nobody has named come too.
    """
    data = RunFolder(cluster).data if run in (None, cluster.run) else None
    folder = RunFolder(replace(cluster, run=run or cluster.run)).path
    request = {"first": True, "step": None, "hashed": hashed, "everything": everything}
    request |= {"data": data.folder if data else "", "names": list(data.needed) if data else []}
    first = _asked(hosts[0], folder, request, MOST_ROWS)
    if first.head is None:
        return None
    request |= {"first": False, "step": first.head.step, "names": []}

    def ask(host: Host) -> _Answer:
        try:
            return _asked(host, folder, request, MOST_ROWS_BESIDE // len(hosts[1:]))
        except RemoteError as error:
            return _Answer(Head(silent=str(error)[:1000]))

    answers = {hosts[0].facts.name: first}
    for host, answer in zip(hosts[1:], on_all(hosts[1:], ask), strict=True):
        answers[host.facts.name] = answer
    silent = tuple(f"{name}: {one.silent}" for name, one in answers.items() if one.silent)
    files = _union({node: answer.files for node, answer in answers.items()})
    left = _union({node: answer.left for node, answer in answers.items()})
    links = {path: target for answer in answers.values() for path, target in answer.links.items()}
    return Inventory(str(run or cluster.run), first.head.word or "", first.head.step, files, left, silent, links)


def _asked(host: Host, folder: str, request: Mapping[str, Any], most_rows: int) -> _Answer:
    """Return what one node has, of which so many rows are read."""
    program = Path(inventory_rows.__file__).read_text()
    argv = ("python3", "-c", program, folder, json.dumps(request))
    doing, answer = f"listing what {host} has of a run", _Answer()
    lines = _lines(host.output(argv, doing, INVENTORY_TIMEOUT_S), doing)
    size, most_bytes = 0, most_rows * BYTES_A_ROW
    for number, line in enumerate(lines):
        size += len(line)
        if number > most_rows or size > most_bytes:  # What is fetched comes first.
            answer.odd.append(
                f"it lists more than {most_rows:,} files, or names of over {most_bytes // 10**6} MB, which are not read"
            )
            break
        if number == 0:
            answer.head = read_answer(HEAD, line, doing)
        else:
            _judge(line, answer, host.facts.name)
    if not request["everything"]:
        _limit_small(answer)
    return answer


def _lines(pieces: Iterator[bytes], doing: str) -> Iterator[bytes]:
    """Yield the lines of a stream; one that has no end ends the answer."""
    partial_line = b""
    for piece in pieces:
        *whole, partial_line = (partial_line + piece).split(b"\n")
        yield from whole
        if len(partial_line) > 3 * ROW_BYTES:
            raise RemoteError(f"{doing}: a line of the answer has no end. Look at the machine: fab status")
    if partial_line:
        yield partial_line


def _judge(line: bytes, answer: _Answer, node: str) -> None:
    """Take one row, or note why it is left out."""
    try:
        row = ROW.validate_json(line)
        path = _decoded(row.path)
        if isinstance(row, Link):
            answer.links[path] = _decoded(row.target)
            return
        local_path = local_name(path)
    except ValidationError as error:
        answer.odd.append(reason_of(error))
    except ValueError:
        answer.odd.append(f"{path[:100]!r} is outside the run's folder")
    else:
        facts = (row.size, row.sha256, intern(row.what), {node: row.written}, local_path if local_path != path else "")
        rows = answer.files if row.list == "files" else answer.left
        rows.append(RemoteFile(_decoded(row.source), path, *facts, row.suspicion))


def _decoded(name: str) -> str:
    return unquote_to_bytes(name).decode("utf-8", "surrogateescape") if "%" in name else name


def _limit_small(answer: _Answer) -> None:
    """Leave small files above the limits, whatever the node says: nobody has named them."""
    total, number, files = 0, 0, []
    for file in sorted(answer.files, key=attrgetter("size")):
        if file.what == SMALL:
            total, number = total + file.size, number + 1
            if file.size > SMALL_BYTES or total > SMALL_TOTAL_BYTES or number > SMALL_FILES:
                answer.left.append(replace(file, what=LARGE))
                continue
        files.append(file)
    answer.files = files


def _union(files: Mapping[str, Sequence[RemoteFile]]) -> tuple[RemoteFile, ...]:
    """Return the files of all nodes; what several have alike comes once, and another file of the same name below its node's name."""
    union: dict[str, RemoteFile] = {}
    for node, listed in files.items():
        for file in listed:
            entry = file
            while (twin := union.get(entry.path)) and (twin.size, twin.sha256) != (entry.size, entry.sha256):
                below = f"nodes/{node}/"
                entry = replace(entry, path=below + entry.path, here=below + entry.here if entry.here else "")
            if twin:
                twin.there.update(entry.there)
            else:
                union[entry.path] = entry
    return tuple(sorted(union.values(), key=attrgetter("path")))


def results(found: Inventory) -> list[RemoteFile]:
    """Return files of value, the most wanted first: without records and curves of the run, and without its training data."""
    missed = [file for file in (*found.files, *found.left) if file.what not in (RECORD, EVENTS, VOCABULARY)]
    return sorted(missed, key=by_want)


def by_want(file: RemoteFile) -> tuple[int, str]:
    """Return a sort key, the most wanted file first."""
    return RANK.index(file.what), file.path
