"""Inventory of a run: the files that its nodes list for a fetch."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sample_spec
from test_jobs_run_spec import CLUSTER
from test_remote_job import Losing

from agent import kill_run
from agent.formats.checkpoints.entries import is_kept
from agent.records.inventory import gather
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.inventory import Inventory, inventory, results, runs_on
from microcluster.remote.job import AGENT, place
from tests.tiny_checkpoint import DATA, INDEX


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


def test_files_in_a_stopped_container_are_reported_as_unknown(tmp_path: Path) -> None:
    inside = {"program_folder": "/opt/program", "container": "microcluster-that-is-not-there", **OWN}
    assert described(tmp_path, keep=["*.csv"], **inside)["silent"] == (
        "container microcluster-that-is-not-there is not running, so what the program wrote in /opt/program cannot be read"
    )
    assert described(tmp_path, **inside)["silent"] == "", "nobody wants anything of that folder"
