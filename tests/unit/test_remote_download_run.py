"""What of a run is brought home, and that it arrives whole or not at all."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sample_spec
from fake_machine import FakeMachine
from test_jobs_run_spec import CLUSTER
from test_remote_job import Losing

from agent.records.inventory import is_kept
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.file_transfer import Inventory, RemoteFile, download, inventory, results, runs_on
from microcluster.remote.job import AGENT, place
from tools.tiny_checkpoint import DATA, INDEX

CONTENT = b"0123456789" * 100
FILE = RemoteFile("/data/runs/x/model", "logdir/model", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), "best model")


class Source(FakeMachine):
    """A machine whose one file may be garbled on the way, or whose connection may be lost in the middle."""

    def __init__(self, *ways: bytes, lost_at: int | None = None) -> None:
        super().__init__()
        self.ways, self.lost_at, self.starts = list(ways), lost_at, []

    def pieces(self, path: str, start: int, end: int) -> Iterator[bytes]:
        self.starts.append(start)
        content = self.ways.pop(0)
        if self.lost_at is not None:
            lost, self.lost_at = self.lost_at, None
            yield content[start:lost]
            raise UnreachableError("lost")
        yield content[start:end]


class Machine(FakeMachine):
    """Answers its inventory."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer

    def _sh(self, words, stdin):  # noqa: ARG002 - as every command of a machine
        return self.answer


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


def test_the_newest_whole_checkpoint_and_the_model_of_the_lowest_loss_are_downloaded_and_a_torn_one_is_not(tmp_path):
    torn, whole = checkpoint("logdir/model.ckpt-300")[:2], checkpoint("logdir/model.ckpt-200")
    better, newer = (checkpoint(f"logdir/best_models/val_loss={loss}") for loss in ("1.5900-step-40", "1.6300-step-50"))
    found = listed(tmp_path, *checkpoint("logdir/model.ckpt-90"), *whole, *torn, *better, *newer)
    assert found == dict.fromkeys(whole, "newest checkpoint") | dict.fromkeys(better, "best model")


def test_records_and_curves_are_downloaded_and_our_own_files_are_not(tmp_path: Path) -> None:
    wanted = {"config.py", "job.log", "progress.jsonl", "preflight.json", "logdir/events.out.tfevents.1.gpu-0"}
    assert set(listed(tmp_path, *wanted, "supervisor.lock", "logdir/.attempt")) == wanted


OWN = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"step-(?P<step>\d+)\.pt"}}


def test_small_files_of_the_log_folder_are_downloaded_though_nobody_has_named_them(tmp_path: Path) -> None:
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
    answered = inventory([Machine(json.dumps(found))], replace(CLUSTER, run="5bd3d71a0f02"))
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


def test_another_node_lists_its_part_of_the_first_nodes_newest_checkpoint_and_no_records(tmp_path: Path) -> None:
    parts = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"step-(?P<step>\d+)/rank\d\.pt"}}
    names = ("job.log", "logdir/step-8/rank2.pt", "logdir/step-9/rank2.pt", "logdir/ranks.csv")
    found = listed(tmp_path, *names, asked={"first": False, "step": 8}, **parts)
    assert found == {"logdir/step-8/rank2.pt": "newest checkpoint", "logdir/ranks.csv": "small file"}


class Node(Losing):
    """This computer with another run's folder, as if it were one of the nodes."""

    def __init__(self, name: str, folder: Path, *, lost: bool = False) -> None:
        super().__init__(0)
        self.facts, self.folder, self.lost = replace(self.facts, name=name), folder, lost

    def run(self, argv, **options):
        if self.lost:
            raise UnreachableError(f"connecting to {self.facts.name}: no answer.")
        return super().run([*argv[:4], str(self.folder), *argv[5:]], **options)


def nodes(tmp_path: Path, *folders: str, **lost: bool) -> Inventory:
    known = replace(CLUSTER, run="0123456789ab")
    hosts = [Node(name, tmp_path / name, lost=lost.get(name.replace("-", "_"), False)) for name in folders]
    for host in hosts:
        place(Losing(0), str(host.folder), {})
        sample_spec.write(host.folder, **OWN)
    found = inventory(hosts, known)
    assert found
    return found


def test_the_files_of_all_nodes_that_answer_come_home_each_once_and_under_names_of_their_own(tmp_path: Path) -> None:
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


def test_every_run_on_the_machines_is_known_the_stacks_own_first(tmp_path: Path) -> None:
    known = replace(CLUSTER, run="0123456789ab", mount_point=str(tmp_path))
    for run in ("00aa00aa00aa", "0123456789ab"):
        write(tmp_path, f"runs/{run}/job.json")
    assert runs_on(Losing(0), known) == ["0123456789ab", "00aa00aa00aa"]


@pytest.mark.parametrize("path", ["../../.ssh/authorized_keys", "/etc/passwd", "logdir/../../x", ""])
def test_a_machine_that_lists_a_file_outside_of_the_runs_folder_brings_nothing(path: str) -> None:
    file = {"source": "/data/x", "path": path, "size": 1, "sha256": "0", "what": "record", "written": 0}
    machine = Machine(json.dumps({"run": "0", "word": "0", "step": None, "files": [], "left": [file]}))
    with pytest.raises(RemoteError, match="is outside the target folder"):
        inventory([machine], replace(CLUSTER, run="0123456789ab"))


def test_a_machine_that_lists_a_file_outside_of_the_runs_folder_keeps_nobody_from_what_the_others_have():
    file = {"source": "/data/x", "path": "logdir/x", "size": 1, "sha256": "0", "what": "record", "written": 0}
    answers = [
        {"word": "0", "step": None, "files": [{**file, "path": path}], "left": []} for path in ("logdir/x", "/etc/x")
    ]
    machines = [Machine(json.dumps(answer)) for answer in answers]
    machines[1].facts = replace(machines[1].facts, name="gpu-1")
    found = inventory(machines, replace(CLUSTER, run="0123456789ab"))
    assert found and [one.path for one in found.files] == ["logdir/x"]
    assert "is outside the target folder" in found.silent[0]


def test_the_files_of_a_run_that_an_earlier_version_has_begun_come_home_whatever_else_it_lists_of_them():
    file = {
        "source": "/data/x",
        "path": "logdir/x",
        "size": 1,
        "sha256": "0",
        "what": "newest checkpoint",
        "written": 3,
    }
    machine = Machine(json.dumps({"word": "0", "step": 9, "files": [{**file, "step": 9}], "left": []}))
    found = inventory([machine], replace(CLUSTER, run="0123456789ab"))
    assert found and [(one.path, list(one.there.values())) for one in found.files] == [("logdir/x", [3])]


def test_a_log_that_is_still_written_is_taken_as_long_as_it_is_now_and_does_not_travel_again(tmp_path: Path) -> None:
    growing = CONTENT + b" and more since"
    assert download(Source(growing), FILE, tmp_path, lambda count: None)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert download(Source(), FILE, tmp_path, lambda count: None) is False


def test_a_lost_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    source = Source(CONTENT, CONTENT, lost_at=300)
    with pytest.raises(UnreachableError):
        download(source, FILE, tmp_path, lambda count: None)
    assert not (tmp_path / FILE.path).exists()
    assert download(source, FILE, tmp_path, lambda count: None)
    assert source.starts == [0, 300]


def test_a_file_that_was_garbled_on_the_way_is_brought_once_more_and_never_taken_for_a_whole_one(
    tmp_path,
):
    there, garbled = [], CONTENT[:-1] + b"X"
    with pytest.raises(RemoteError, match="with a wrong hash"):
        download(Source(garbled, garbled), FILE, tmp_path, lambda count: None)
    assert list((tmp_path / "logdir").iterdir()) == []
    assert download(Source(garbled, CONTENT), FILE, tmp_path, there.append)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert sum(there) == FILE.size


def test_what_a_program_wrote_in_a_container_that_is_not_running_is_said_not_to_be_known(tmp_path: Path) -> None:
    inside = {"program_folder": "/opt/program", "container": "microcluster-that-is-not-there", **OWN}
    assert described(tmp_path, keep=["*.csv"], **inside)["silent"] == (
        "container microcluster-that-is-not-there is not running, so what the program wrote in /opt/program cannot be read"
    )
    assert described(tmp_path, **inside)["silent"] == "", "nobody wants anything of that folder"
