"""Download of a run: the files that are fetched, each whole or not at all."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
import sample_spec
from fake_machine import FakeMachine
from hypothesis import given
from hypothesis import strategies as st
from test_jobs_run_spec import CLUSTER
from test_remote_job import Losing

from agent import kill_run
from agent.formats.checkpoints.entries import is_kept
from agent.records.inventory import gather
from microcluster.core.local_name import local_name
from microcluster.core.polling import wait_until
from microcluster.remote import file_transfer
from microcluster.remote.errors import RemoteError, TooSlowError, UnreachableError
from microcluster.remote.file_transfer import download, fetch_files
from microcluster.remote.inventory import Inventory, RemoteFile, inventory, results, runs_on
from microcluster.remote.job import AGENT, place
from tests.tiny_checkpoint import DATA, INDEX

CONTENT = b"0123456789" * 100
FILE = RemoteFile("/data/runs/x/model", "logdir/model", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "best model")


class Source(FakeMachine):
    """A machine whose one file may be garbled on the way or rewritten, or whose connection may be lost in the middle."""

    def __init__(self, *ways: bytes, lost_at: int | None = None) -> None:
        super().__init__()
        self.ways, self.lost_at, self.starts, self.there = list(ways), lost_at, [], CONTENT

    def pieces(self, path: str, start: int, end: int) -> Iterator[bytes]:
        self.starts.append(start)
        content = self.ways.pop(0)
        if self.lost_at is not None:
            lost, self.lost_at = self.lost_at, None
            yield content[start:lost]
            raise UnreachableError("lost")
        yield content[start:end]

    def output(self, argv, doing, silent_s=None, stdin=b""):
        raise RemoteError(f"{doing}: there is no Python.")

    def _sh(self, words, stdin):
        assert words[3] == "describe"
        return json.dumps([len(self.there), hashlib.sha256(self.there).hexdigest()])


class Dripping(Source):
    """A machine that brings small files too slowly."""

    def output(self, argv, doing, silent_s=None, stdin=b""):
        raise TooSlowError("slow")


class Machine(Losing):
    """This computer with a folder whose agent gives a canned answer."""

    def __init__(self, folder: Path, answer: object, name: str = "gpu-0") -> None:
        super().__init__(0)
        self.facts, self.folder = replace(self.facts, name=name), folder / name
        (self.folder / "agent").mkdir(parents=True)
        (self.folder / "job.json").write_text("{}")
        (self.folder / "agent" / "__main__.py").write_text(f"print({json.dumps(answer)!r})")

    def run(self, argv, **options):
        return super().run([*argv[:3], str(self.folder), *argv[4:]], **options)


RUN = replace(CLUSTER, run="0123456789ab")


def row(path: str, **facts: object) -> dict[str, object]:
    known = {"source": "/data/x", "path": path, "size": 1, "sha256": "0" * 64, "what": "record", "written": 3}
    return known | facts


def answered(folder: Path, *rows: dict[str, object], left: Sequence[object] = (), **options: bool) -> Inventory:
    found = inventory([Machine(folder, {"word": "0", "step": 9, "files": rows, "left": left})], RUN, **options)
    assert found
    return found


ASKED = {"first": True, "step": None, "hashed": True, "everything": False, "data": "", "names": []}


def described(run: Path, asked: dict[str, object] | None = None, **fields: object) -> dict[str, Any]:
    """Return what a node with this folder says that it has."""
    sample_spec.write(run, **fields)
    argv = [sys.executable, AGENT, "records.inventory", run, json.dumps(ASKED | (asked or {}))]
    found = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    found["files"] = [one for one in found["files"] if one["path"] != "job.json"]
    return found


def write(run: Path, *names: str, size: int | None = None) -> None:
    for name in names:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {".index": INDEX, ".data-00000-of-00001": DATA}.get(path.suffix, name.encode())
        path.write_bytes(whole if size is None else b"")
        if size is not None:
            os.truncate(path, size)


def listed(run: Path, *names: str, asked: dict[str, object] | None = None, **fields: object) -> dict[str, str]:
    write(run, *names)
    found = described(run, asked, **fields)["files"]
    assert all(one["sha256"] == hashlib.sha256(Path(one["source"]).read_bytes()).hexdigest() for one in found)
    return {one["path"]: one["what"] for one in found}


def checkpoint(name: str) -> list[str]:
    return [f"{name}{part}" for part in (".index", ".meta", ".data-00000-of-00001")]


def test_newest_best_and_a_newer_suspected_checkpoint_are_fetched_and_others_listed(tmp_path):
    torn, whole = checkpoint("logdir/model.ckpt-300")[:2], checkpoint("logdir/model.ckpt-200")
    better, newer = (checkpoint(f"logdir/best_models/val_loss={loss}") for loss in ("1.5900-step-40", "1.6300-step-50"))
    older = checkpoint("logdir/model.ckpt-90")
    found = listed(tmp_path, *older, *whole, *torn, *better, *newer)
    wanted = dict.fromkeys(whole, "newest checkpoint") | dict.fromkeys(better, "best model")
    assert found == wanted | dict.fromkeys(torn, "suspected checkpoint")
    left = {one["path"]: (one["what"], one["step"], one["suspicion"]) for one in described(tmp_path)["left"]}
    assert left == dict.fromkeys(older, ("checkpoint", 90, "")) | dict.fromkeys(newer, ("checkpoint", 50, ""))


def test_records_and_curves_are_downloaded_and_our_own_files_are_not(tmp_path: Path) -> None:
    wanted = {"config.py", "job.log", "progress.jsonl", "preflight.json", "logdir/events.out.tfevents.1.gpu-0"}
    assert set(listed(tmp_path, *wanted, "supervisor.lock", "logdir/.attempt")) == wanted


OWN = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"step-(?P<step>\d+)\.pt"}}


def test_small_files_of_the_log_folder_are_fetched_unasked(tmp_path: Path) -> None:
    write(tmp_path, "logdir/step-9.pt")
    (tmp_path / "logdir" / "last.pt").symlink_to("step-9.pt")  # A link to a checkpoint is left.
    found = listed(tmp_path, "logdir/tokenizer/vocab.json", "logdir/metrics.csv", **OWN)
    small = dict.fromkeys(("logdir/tokenizer/vocab.json", "logdir/metrics.csv"), "small file")
    assert found == {"logdir/step-9.pt": "newest checkpoint", **small}


def test_large_files_are_left_and_named_until_everything_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, *(f"logdir/{number}.bin" for number in range(11)), size=10**7)
    write(tmp_path, "logdir/one.bin", size=10**7 + 1)
    found = described(tmp_path, {"hashed": False}, **OWN)
    assert sorted(one["path"] for one in found["left"]) == ["logdir/9.bin", "logdir/one.bin"]
    answered = inventory([Machine(tmp_path / "machine", found)], RUN)
    assert [file.path for file in answered.left] == ["logdir/9.bin", "logdir/one.bin"]
    assert len(found["files"]) == 10
    everything = described(tmp_path, {"hashed": False, "everything": True}, **OWN)
    assert (len(everything["files"]), everything["left"]) == (12, [])


def test_patterns_name_large_files_older_checkpoints_and_what_lies_beside_the_program(tmp_path: Path) -> None:
    write(tmp_path, "logdir/final/model.bin", size=10**7 + 1)
    names = ("logdir/step-8.pt", "logdir/step-9.pt", "program/train.py", "program/out/scores.csv", "program/cache.csv")
    fields = {"program_folder": str(tmp_path / "program"), "files": ["program/train.py"], **OWN}
    keep = {"keep": ["final", "step-8.pt", "out/*.csv", "*.py"]}
    found = listed(tmp_path, *names, **fields, **keep)
    assert [name for name, what in found.items() if what == "kept"] == [
        *("logdir/final/model.bin", "logdir/step-8.pt", "program/out/scores.csv")
    ]


@pytest.mark.parametrize("pattern", ["vocab.json", "**/vocab.json", "*.json", "a/**/vocab.json", "a/"])
def test_a_pattern_matches_at_any_depth_where_it_says_so(pattern: str) -> None:
    assert [is_kept(name, [pattern]) for name in ("vocab.json", "a/vocab.json", "b/a.txt")] == [
        not pattern.startswith("a/"),
        pattern != "vocab.json",
        False,
    ]


def test_another_node_lists_its_parts_of_the_newest_checkpoint_without_records(tmp_path: Path) -> None:
    parts = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"step-(?P<step>\d+)/rank\d\.pt"}}
    names = ("job.log", "logdir/step-8/rank2.pt", "logdir/step-9/rank2.pt", "logdir/ranks.csv")
    found = listed(tmp_path, *names, asked={"first": False, "step": 8}, **parts)
    newest = {"logdir/step-8/rank2.pt": "newest checkpoint", "logdir/step-9/rank2.pt": "suspected checkpoint"}
    assert found == newest | {"logdir/ranks.csv": "small file"}


def test_what_was_put_aside_is_listed_wherever_it_lies(tmp_path: Path) -> None:
    drive = tmp_path / "drive" / "0123456789ab"
    write(drive, "step-9.pt")
    write(drive.parent, f"{drive.name}.torn-2/step-10.pt", f"{drive.name}.without-checkpoint-1/notes.txt")
    run = tmp_path / "run"
    write(run, "torn/step-7.pt")
    (run / "logdir").symlink_to(drive)
    found = described(run, shared=str(drive), **OWN)["left"]
    assert [(one["path"], one["what"], one["step"]) for one in found] == [
        ("logdir.torn-2/step-10.pt", "put aside", 10),
        ("logdir.without-checkpoint-1/notes.txt", "put aside", None),
        ("torn/step-7.pt", "put aside", 7),
    ]
    everything = described(run, {"everything": True}, shared=str(drive), **OWN)
    assert everything["left"] == [] and len(everything["files"]) == 4


def test_what_the_program_wrote_in_its_folder_is_listed(tmp_path: Path) -> None:
    write(tmp_path, "program/train.py", "program/out/model.bin")
    fields = {"program_folder": str(tmp_path / "program"), "files": ["program/train.py"], **OWN}
    write(tmp_path, "program/of_the_image.py")
    write(tmp_path, "word")
    for name, moment in (("program/of_the_image.py", 10), ("word", 20)):
        os.utime(tmp_path / name, (moment, moment))
    (one,) = described(tmp_path, **fields)["left"]
    assert (one["path"], one["what"]) == ("program/out/model.bin", "program file")


def test_other_nodes_parts_are_waited_for_with_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = {"addresses": ["10.0.0.0", "10.0.0.1"], "names": ["gpu-0", "gpu-1"], "runtime": "host", "environment": "/usr"}
    sample_spec.write(tmp_path, **two, **OWN)
    limits: list[float | None] = []
    monkeypatch.setattr(kill_run, "ask", lambda argv, timeout_s: limits.append(timeout_s) or (0, ""))
    gather(str(tmp_path))
    assert len(limits) == 1 and limits[0] is not None


def test_a_suspected_checkpoint_is_fetched_where_there_is_no_other(tmp_path: Path) -> None:
    write(tmp_path, "logdir/step-9.pt", size=0)
    (one,) = described(tmp_path, **OWN)["files"]
    assert (one["what"], one["step"], one["suspicion"]) == ("newest checkpoint", 9, "step-9.pt is empty")


class Node(Losing):
    """This computer with another run's folder, as if it were one of the nodes."""

    def __init__(self, name: str, folder: Path, *, lost: bool = False) -> None:
        super().__init__(0)
        self.facts, self.folder, self.lost = replace(self.facts, name=name), folder, lost

    def run(self, argv, **options):
        if self.lost:
            raise UnreachableError(f"connecting to {self.facts.name}: no answer.")
        return super().run([*argv[:3], str(self.folder), *argv[4:]], **options)


def nodes(tmp_path: Path, *folders: str, **lost: bool) -> Inventory:
    known = replace(CLUSTER, run="0123456789ab")
    hosts = [Node(name, tmp_path / name, lost=lost.get(name.replace("-", "_"), False)) for name in folders]
    for host in hosts:
        place(Losing(0), str(host.folder), {})
        sample_spec.write(host.folder, **OWN)
    found = inventory(hosts, known)
    assert found
    return found


def test_files_of_all_answering_nodes_are_fetched_once_under_their_own_names(tmp_path: Path) -> None:
    write(tmp_path, "gpu-0/logdir/config.json", "gpu-0/logdir/step-9.pt", "gpu-1/logdir/ranks.csv")
    for name, text in (("gpu-0", "0.1"), ("gpu-1", "0.25")):
        (tmp_path / name / "logdir" / "loss.csv").write_text(text)
    shutil.copy(tmp_path / "gpu-0/logdir/config.json", tmp_path / "gpu-1/logdir/config.json")
    found = nodes(tmp_path, "gpu-0", "gpu-1", "gpu-2", gpu_2=True)
    assert found.silent == ("gpu-2: connecting to gpu-2: no answer.",), "which keeps nobody from the others' files"
    there = {file.path: list(file.there) for file in results(found)}
    assert there == {
        "logdir/config.json": ["gpu-0", "gpu-1"],
        "logdir/step-9.pt": ["gpu-0"],
        "logdir/loss.csv": ["gpu-0"],
        "logdir/ranks.csv": ["gpu-1"],
        "nodes/gpu-1/logdir/loss.csv": ["gpu-1"],
    }


@pytest.mark.parametrize(("number", "what"), [(1764334622123456789, "newest checkpoint"), (10**19, "small file")])
def test_a_number_of_any_size_in_a_name_ends_no_list(tmp_path: Path, number: int, what: str) -> None:
    write(tmp_path, "gpu-0/logdir/config.json", f"gpu-0/logdir/step-{number}.pt")
    found = {file.path: file.what for file in results(nodes(tmp_path, "gpu-0"))}
    assert found == {"logdir/config.json": "small file", f"logdir/step-{number}.pt": what}


@pytest.mark.parametrize(
    ("size", "paths"),
    [
        (1, {"nodes/gpu-1/logdir/a": ["gpu-0", "gpu-1"]}),
        (2, {"nodes/gpu-1/logdir/a": ["gpu-0"], "nodes/gpu-1/nodes/gpu-1/logdir/a": ["gpu-1"]}),
    ],
    ids=["as it is there", "as it was there before"],
)
def test_what_the_launcher_keeps_of_a_node_is_listed(tmp_path: Path, size: int, paths: dict[str, list[str]]) -> None:
    first = [row("logdir/a", sha256="1" * 64), row("nodes/gpu-1/logdir/a", sha256="2" * 64, size=size)]
    own = [row("logdir/a", sha256="2" * 64)]
    rows = {"gpu-0": first, "gpu-1": own}
    hosts = [Machine(tmp_path, {"word": "0", "files": files}, name) for name, files in rows.items()]
    found = inventory(hosts, RUN)
    assert found
    assert {file.path: list(file.there) for file in found.files} == {"logdir/a": ["gpu-0"], **paths}


def test_every_run_on_the_machines_is_known_the_stacks_own_first(tmp_path: Path) -> None:
    known = replace(CLUSTER, run="0123456789ab", mount_point=str(tmp_path))
    for run in ("00aa00aa00aa", "0123456789ab"):
        write(tmp_path, f"runs/{run}/job.json")
    assert runs_on(Losing(0), known) == ["0123456789ab", "00aa00aa00aa"]


OUTSIDE = ["../../.ssh/authorized_keys", "/etc/passwd", "//etc/cron.d/x", "logdir/../../x", "logdir//x", "./x", ""]


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_name_outside_the_runs_folder_is_left_out_alone(tmp_path: Path, path: str) -> None:
    found = answered(tmp_path, row(path), row("logdir/x"), left=[row(path)])
    assert [one.path for one in (*found.files, *found.left)] == ["logdir/x"]
    assert "2 of the files that it lists were left out" in found.silent[0]
    assert "is outside the run's folder" in found.silent[0]


ODD = [
    {"size": -1},
    {"size": 1 << 60},
    {"size": "1"},
    {"size": 1.5},
    {"sha256": "x"},
    {"what": "everything"},
    {"written": None},
]


@pytest.mark.parametrize("facts", ODD)
def test_a_row_of_another_shape_is_left_out_and_the_others_come(tmp_path: Path, facts: dict[str, object]) -> None:
    found = answered(tmp_path, row("logdir/y", **facts), row("logdir/x"))
    assert [one.path for one in found.files] == ["logdir/x"]
    assert "1 of the files that it lists were left out" in found.silent[0]


class Raw(Machine):
    """A machine that answers with these bytes instead of rows."""

    def __init__(self, folder: Path, *pieces: bytes, name: str = "gpu-0") -> None:
        super().__init__(folder, {}, name)
        self.answer = pieces

    def output(self, argv, doing, silent_s=None, stdin=b""):  # noqa: ARG002
        yield from self.answer


HEADS = [b"[]", b"5", b'{"word": 7}', b'{"step": -1}', b'{"step": NaN}', b'{"word": "%s"}' % (b"0" * 99), b"\xff", b"{"]


@pytest.mark.parametrize("head", [*HEADS, b"[" * 10**5, b'{"step": 1%s}' % (b"0" * 10**4)])
def test_an_answer_that_is_no_list_of_files_is_a_sentence(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(RemoteError, match="listing what gpu-0"):
        inventory([Raw(tmp_path, head)], RUN)


def test_an_odd_answer_of_one_node_does_not_stop_the_others(tmp_path: Path) -> None:
    whole = {"word": "0", "step": None, "files": [row("logdir/x")], "left": []}
    found = inventory([Machine(tmp_path, whole), Raw(tmp_path, b"{]", name="gpu-1")], RUN)
    assert found and [one.path for one in found.files] == ["logdir/x"]
    assert found.silent[0].startswith("gpu-1: listing what gpu-1")


def test_the_limits_of_small_files_are_this_computers(tmp_path: Path) -> None:
    small = [row(f"logdir/{number}", what="small file") for number in range(1005)]
    found = answered(tmp_path, *small, row("logdir/big", what="small file", size=10**7 + 1))
    assert (len(found.files), len(found.left)) == (1000, 6)
    again = answered(tmp_path / "again", *small, everything=True)
    assert len(again.files) == 1005


def test_of_more_files_than_anybody_reads_the_first_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microcluster.remote.inventory.MOST_ROWS", 10)
    found = answered(tmp_path, *(row(f"logdir/{number}") for number in range(11)))
    assert len(found.files) == 10 and "it lists more than 10 files" in found.silent[0]


def test_in_a_container_an_absolute_link_means_its_own_disk(tmp_path: Path) -> None:
    run, inside = tmp_path / "runs" / "0123456789ab", tmp_path / "container" / "runs" / "0123456789ab"
    write(inside, "logdir/step-9.pt")
    write(tmp_path / "container", "out/model.bin")
    run.mkdir(parents=True)
    (run / "in_container").symlink_to(inside)
    (inside / "logdir" / "model.bin").symlink_to(tmp_path / "out" / "model.bin")
    (inside / "logdir" / "secret").symlink_to("/etc/hostname")
    found = {one["path"]: one["source"] for one in described(run, **OWN)["files"]}
    assert Path(found["logdir/model.bin"]).resolve() == tmp_path / "container" / "out" / "model.bin"
    assert "logdir/secret" not in found


def test_a_line_without_an_end_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="has no end"):
        inventory([Raw(tmp_path, *[b"x" * 65536] * 10**4)], RUN)


def test_files_of_a_run_that_an_earlier_version_began_are_fetched(tmp_path):
    found = answered(tmp_path, row("logdir/x", what="newest checkpoint", step=9))
    assert [(one.path, list(one.there.values())) for one in found.files] == [("logdir/x", [3])]


def test_links_are_listed_with_where_they_lead(tmp_path: Path) -> None:
    write(tmp_path, "logdir/step-9.pt")
    (tmp_path / "logdir" / "last.pt").symlink_to("step-9.pt")
    assert described(tmp_path, **OWN)["links"] == [{"path": "logdir/last.pt", "target": "step-9.pt"}]


def fetched(source: Source, folder: Path, report: Callable[[int], None] = lambda count: None) -> bool:
    return download(source, FILE, folder, report)[1]


def test_a_growing_log_is_fetched_at_its_present_length_and_only_once(tmp_path: Path) -> None:
    growing = CONTENT + b" and more since"
    assert fetched(Source(growing), tmp_path)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert fetched(Source(), tmp_path) is False


def test_a_lost_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    source = Source(CONTENT, CONTENT, lost_at=300)
    with pytest.raises(UnreachableError):
        fetched(source, tmp_path / "run")
    assert not (tmp_path / "run" / FILE.path).exists()
    assert fetched(source, tmp_path / "run")
    assert source.starts == [0, 300]


def test_a_file_garbled_on_the_way_is_fetched_again_and_never_kept(tmp_path):
    there, garbled = [], CONTENT[:-1] + b"X"
    with pytest.raises(RemoteError, match="3 times with a wrong hash"):
        fetched(Source(garbled, garbled, garbled), tmp_path)
    assert list((tmp_path / "logdir").iterdir()) == []
    assert fetched(Source(garbled, CONTENT), tmp_path, there.append)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert sum(there) == FILE.size


def test_a_file_that_is_rewritten_meanwhile_comes_as_it_is_now(tmp_path: Path) -> None:
    source = Source(b"another" * 50, b"another" * 50)
    source.there = b"another" * 50
    arrived, is_new = download(source, FILE, tmp_path, lambda count: None)
    assert is_new and (arrived.size, (tmp_path / FILE.path).read_bytes()) == (350, source.there)


def test_small_files_that_come_too_slowly_hold_no_large_one_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(file_transfer, "ONE_BY_ONE_S", 0)
    monkeypatch.setattr(file_transfer, "TOGETHER_BYTES", len(CONTENT))
    more = CONTENT + b"1"
    large = replace(
        FILE, path="logdir/large", size=len(more), sha256=hashlib.sha256(more).hexdigest(), there={"gpu-0": 1}
    )
    small = [replace(FILE, path=f"logdir/{n}", there={"gpu-0": 1}, what="best model") for n in range(9)]
    done = fetch_files(
        {"gpu-0": Source(CONTENT, more)}, [*small, replace(large, what="record")], tmp_path / "here", lambda _: None
    )
    assert done.new == ["logdir/0", "logdir/large"] and len(done.failed) == 8
    assert "one by one" in done.failed["logdir/8"]


def test_a_file_that_fails_is_named_and_the_others_come(tmp_path: Path) -> None:
    other = replace(FILE, path="logdir/other", here="", there={"gpu-0": 1})
    bad = replace(FILE, path="logdir/bad", there={"gpu-0": 1}, what="newest checkpoint")
    source = Source(*[CONTENT[1:]] * 3, CONTENT)
    done = fetch_files({"gpu-0": source}, [bad, replace(other, what="kept")], tmp_path / "run", lambda count: None)
    assert (done.new, list(done.failed)) == (["logdir/other"], ["logdir/bad"])
    assert (tmp_path / "run" / "logdir" / "other").read_bytes() == CONTENT


def test_small_files_come_by_one_command_and_a_changed_one_alone(tmp_path: Path) -> None:
    class Counting(Losing):
        asked: list[str] = []

        def run(self, argv, **options):
            self.asked.append(argv[0])
            return super().run(argv, **options)

        def pieces(self, path, start, end):
            self.asked.append(path)
            yield Path(path).read_bytes()[start:end]

    write(tmp_path, *(f"there/{number}" for number in range(150)))
    wanted = []
    for path in sorted((tmp_path / "there").iterdir()):
        content = path.read_bytes()
        facts = (len(content), hashlib.sha256(content).hexdigest(), "small file", {"gpu-0": 1})
        wanted.append(RemoteFile(str(path), f"logdir/{path.name}", *facts))
    (tmp_path / "there" / "7").write_text("rewritten meanwhile")
    done = fetch_files({"gpu-0": Counting(0)}, wanted, tmp_path / "run", lambda count: None)
    assert (len(done.new), done.failed) == (150, {})
    assert (tmp_path / "run" / "logdir" / "7").read_text() == "rewritten meanwhile"
    assert Counting.asked == ["python3", "sh", str(tmp_path / "there" / "7")]


def test_empty_files_end_no_fetch_of_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_transfer, "TOGETHER", 2)
    write(tmp_path, "there/z")
    (tmp_path / "there" / "z").write_bytes(CONTENT)
    small = replace(FILE, source=str(tmp_path / "there" / "z"), path="logdir/z", there={"gpu-0": 1})
    empty = replace(small, size=0, sha256=hashlib.sha256().hexdigest())
    wanted = [small, *(replace(empty, path=f"logdir/{number}") for number in range(4))]
    monkeypatch.setattr(Losing, "pieces", None)
    done = fetch_files({"gpu-0": Losing(0)}, wanted, tmp_path / "run", lambda count: None)
    assert (len(done.new), done.failed) == (5, {})
    assert (tmp_path / "run" / "logdir" / "0").read_bytes() == b""
    assert (tmp_path / "run" / "logdir" / "z").read_bytes() == CONTENT


def test_what_has_no_room_is_named_and_leaves_the_disk_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microcluster.remote.file_transfer.SPARE_BYTES", 1 << 60)
    file = replace(FILE, there={"gpu-0": 1})
    done = fetch_files({"gpu-0": Source(CONTENT)}, [file], tmp_path / "run", lambda count: None)
    assert "Make room there, then fetch again" in done.failed[FILE.path]


def test_a_link_on_this_computer_is_not_followed_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "logdir").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RemoteError, match="a link leads out of the folder"):
        fetched(Source(CONTENT), tmp_path / "run")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_second_fetch_waits_for_the_first_and_says_for_whom(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    began, go_on = threading.Event(), threading.Event()

    class Slow(Source):
        def pieces(self, path, start, end):
            began.set()
            go_on.wait(20)
            return super().pieces(path, start, end)

    file, ends = replace(FILE, there={"gpu-0": 1}), []

    def fetch(source: Source) -> None:
        ends.append(fetch_files({"gpu-0": source}, [file], tmp_path / "run", lambda count: None).failed)

    first = threading.Thread(target=fetch, args=(Slow(CONTENT),))
    second = threading.Thread(target=fetch, args=(Source(),))
    first.start()
    began.wait(20)
    second.start()
    whom = f"waiting for the fetch of process {os.getpid()} since "
    wait_until("the second fetch to say for whom it waits", lambda: whom in capfd.readouterr().err, timeout_s=20)
    go_on.set()
    first.join(20)
    second.join(20)
    assert ends == [{}, {}], "the second finds the file whole and reads nothing"


NAMES = st.lists(
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1), min_size=1
)


@given(NAMES.map("/".join), st.binary(max_size=300))
def test_every_name_stays_below_its_folder_and_can_be_read_back(path: str, raw: bytes) -> None:
    for name in (path, os.fsdecode(raw.replace(b"\0", b"").replace(b"/", b"_")), f"{path}%41", path + "x" * 300):
        try:
            local = local_name(name)
        except ValueError:
            assert set(name.split("/")) & {"", ".", ".."}
            continue
        assert Path("/run", local).resolve().is_relative_to("/run") and local.isprintable()
        assert all(len(part.encode()) <= 255 for part in local.split("/"))
        assert "%~" in local or unquote_to_bytes(local) == os.fsencode(name)


@pytest.mark.parametrize(
    "name", ["manifest.json", "Report.html", ".git/hooks/x", "a/.GIT/config", "tab\there", "a\u202eb"]
)
def test_names_that_mean_something_here_are_escaped(name: str) -> None:
    assert local_name(name) != name
    assert unquote_to_bytes(local_name(name)).decode() == name


@pytest.mark.parametrize("name", ["logdir/model.ckpt-9.index", "a/report.html", "50%_done", "é/模型.pt", "a b", "..."])
def test_usual_names_stay_as_they_are(name: str) -> None:
    assert local_name(name) == name


def test_files_in_a_stopped_container_are_reported_as_unknown(tmp_path: Path) -> None:
    inside = {"program_folder": "/opt/program", "container": "microcluster-that-is-not-there", **OWN}
    assert described(tmp_path, keep=["*.csv"], **inside)["silent"] == (
        "container microcluster-that-is-not-there is not running, so what the program wrote in /opt/program cannot be read"
    )
    assert described(tmp_path, **inside)["silent"] == "", "nobody wants anything of that folder"


def test_a_machine_that_is_too_slow_is_asked_once(tmp_path):
    machine = Dripping(CONTENT)
    file = replace(FILE, there={"gpu-0": 1})
    assert fetch_files({"gpu-0": machine}, [file], tmp_path / "run", lambda _: None).failed == {file.path: "slow"}
    assert machine.starts == []


def test_many_files_that_cannot_be_had_keep_no_other_from_being_tried(tmp_path):
    class Gone(Dripping):
        batches = 0

        def output(self, argv, doing, *more, **options):
            self.batches += 1
            yield bytes(FILE.size * 64)

        def pieces(self, path, start, end):
            self.starts.append(path)
            raise RemoteError(f"{path} is gone.")

    machine = Gone()
    files = [replace(FILE, path=f"logdir/{n}", source=f"/{n}", there={"gpu-0": 1}) for n in range(500)]
    fetched = fetch_files({"gpu-0": machine}, files, tmp_path / "run", lambda _: None)
    assert len(fetched.failed) == 500, "each is named"
    assert (machine.batches, len(machine.starts)) == (1, 500)
