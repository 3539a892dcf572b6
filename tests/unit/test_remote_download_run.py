"""What of a run is brought home, and that it arrives whole or not at all."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sample_spec
from fake_machine import FakeMachine
from test_jobs_run_spec import CLUSTER
from tiny_checkpoint import DATA, INDEX

from microcluster.remote.download_run import RemoteFile, download, inventory
from microcluster.remote.errors import RemoteError, UnreachableError
from microcluster.remote.job import AGENT

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


def listed(tmp_path: Path, *names: str) -> dict[str, str]:
    run, data = tmp_path / "run", tmp_path / "data"
    data.mkdir()
    for name in names:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {".index": INDEX, ".data-00000-of-00001": DATA}.get(path.suffix, name.encode())
        path.write_bytes(whole)
    sample_spec.write(run)
    argv = [sys.executable, AGENT, "inventory", run, data]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    found = [one for one in found if one["path"] != "job.json"]
    assert all(one["sha256"] == hashlib.sha256((run / one["path"]).read_bytes()).hexdigest() for one in found)
    return {one["path"]: one["what"] for one in found}


def checkpoint(name: str) -> list[str]:
    return [f"{name}{part}" for part in (".index", ".meta", ".data-00000-of-00001")]


def test_the_newest_whole_checkpoint_is_downloaded_and_a_torn_one_is_not(tmp_path: Path) -> None:
    torn = checkpoint("logdir/model.ckpt-300")[:2]
    found = listed(tmp_path, *checkpoint("logdir/model.ckpt-90"), *checkpoint("logdir/model.ckpt-200"), *torn)
    assert set(found) == set(checkpoint("logdir/model.ckpt-200"))


def test_the_best_model_is_the_one_of_the_lowest_loss(tmp_path: Path) -> None:
    better, newer = "logdir/best_models/val_loss=1.5900-step-40", "logdir/best_models/val_loss=1.6300-step-50"
    found = listed(tmp_path, *checkpoint(better), *checkpoint(newer))
    assert found == dict.fromkeys(checkpoint(better), "best model")


def test_records_and_events_are_downloaded_and_scratch_files_are_not(tmp_path: Path) -> None:
    wanted = {"config.py", "job.log", "progress.jsonl", "preflight.json", "logdir/events.out.tfevents.1.gpu-0"}
    assert set(listed(tmp_path, *wanted, "supervisor.lock", "logdir/graph.pbtxt")) == wanted


@pytest.mark.parametrize("path", ["../../.ssh/authorized_keys", "/etc/passwd", "logdir/../../x", ""])
def test_a_machine_that_lists_a_file_outside_of_the_runs_folder_brings_nothing(path: str) -> None:
    machine = Machine(json.dumps([{"source": "/data/x", "path": path, "size": 1, "sha256": "0", "what": "record"}]))
    with pytest.raises(RemoteError, match="is outside the target folder"):
        inventory(machine, replace(CLUSTER, run="0123456789ab"))


def test_a_log_that_is_still_written_is_taken_as_long_as_it_is_now(tmp_path: Path) -> None:
    growing = CONTENT + b" and more since"
    assert download(Source(growing), FILE, tmp_path, lambda count: None)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT


def test_what_is_there_already_does_not_travel_again(tmp_path: Path) -> None:
    download(Source(CONTENT), FILE, tmp_path, lambda count: None)
    assert download(Source(), FILE, tmp_path, lambda count: None) is False


def test_a_lost_connection_is_taken_up_where_it_broke(tmp_path: Path) -> None:
    source = Source(CONTENT, CONTENT, lost_at=300)
    with pytest.raises(UnreachableError):
        download(source, FILE, tmp_path, lambda count: None)
    assert not (tmp_path / FILE.path).exists()
    assert download(source, FILE, tmp_path, lambda count: None)
    assert source.starts == [0, 300]


def test_a_file_that_was_garbled_on_the_way_is_brought_once_more(tmp_path: Path) -> None:
    there = []
    assert download(Source(CONTENT[:-1] + b"X", CONTENT), FILE, tmp_path, there.append)
    assert (tmp_path / FILE.path).read_bytes() == CONTENT
    assert sum(there) == FILE.size


def test_a_file_that_never_arrives_whole_is_never_taken_for_one(tmp_path: Path) -> None:
    garbled = CONTENT[:-1] + b"X"
    with pytest.raises(RemoteError, match="with a wrong hash"):
        download(Source(garbled, garbled), FILE, tmp_path, lambda count: None)
    assert list((tmp_path / "logdir").iterdir()) == []
