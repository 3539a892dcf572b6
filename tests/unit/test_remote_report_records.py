"""A report's reading on the launcher, with the programs that run there and a folder of this computer."""

import dataclasses
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
import sample_spec
from command_samples import CLUSTER
from fake_machine import FakeMachine

from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import report_records
from microcluster.remote.errors import Completed
from microcluster.remote.job import AGENT
from tests.tiny_checkpoint import DATA, INDEX, save


class Launcher(FakeMachine):
    """Runs the programs here, in a folder instead of the run's; the data that are counted are not there."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def read(self, path: str) -> str | None:
        file = self.folder / path.rpartition("/")[2]
        return file.read_text() if file.exists() else None

    def run(self, argv, *, stdin="", timeout_s=None, accept=(0,), answer_bytes=0):
        words = [word.replace(RunFolder(CLUSTER).path, str(self.folder)) for word in argv]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        return Completed(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(AGENT, tmp_path / "agent")
    sample_spec.write(tmp_path)
    return tmp_path


def read(folder):
    return report_records.read(Launcher(folder), CLUSTER)


def field(number: int, kind: int, content: bytes) -> bytes:
    """Return a field of a protocol buffer; all numbers and lengths here are below 128."""
    return bytes([number << 3 | kind]) + (bytes([len(content)]) if kind == 2 else b"") + content


def event(step: int, tag: bytes, value: float) -> bytes:
    inner = field(1, 2, tag) + field(2, 5, struct.pack("<f", value))
    return field(1, 1, struct.pack("<d", 1.0)) + field(2, 0, bytes([step])) + field(5, 2, field(1, 2, inner))


def record(content: bytes) -> bytes:
    return struct.pack("<QI", len(content), 0) + content + b"\0\0\0\0"


def test_every_checkpoint_is_listed_with_parts_time_and_wholeness(folder):
    save(folder / "logdir", "model.ckpt-100")
    save(folder / "logdir", "model.ckpt-200", data=DATA[:-1])
    save(folder / "logdir", "best_models/val_loss=1.5000-step-101")
    save(folder / "torn", "model.ckpt-90")
    found = {one.name: one for one in read(folder).checkpoints}
    whole = found["model.ckpt-100"]
    assert whole.sizes == {"data": len(DATA), "meta": 5, "index": len(INDEX)}
    assert (whole.step, whole.best, whole.flaw, whole.size) == (100, False, "", len(DATA) + 5 + len(INDEX))
    assert whole.written == pytest.approx((folder / "logdir/model.ckpt-100.index").stat().st_mtime, abs=1)
    assert "instead of" in found["model.ckpt-200"].flaw
    assert found["val_loss=1.5000-step-101"].best
    assert found["model.ckpt-90"].flaw == "put aside", "what could not be used is never shown as whole"


def test_a_checkpoint_of_any_name_is_listed(folder):
    pattern = {"pattern": r"(?s:.*)step-(?P<step>\d+)\.pt"}
    sample_spec.write(folder, checkpoints="file_formats", checkpoint_options=pattern)
    names = ("a\nb/step-1.pt", os.fsdecode(b"\xff/step-2.pt"), "x" * 251 + "/step-3.pt", "step-1764334622123456789.pt")
    for name in (*names, f"step-{10**19}.pt"):
        path = folder / "logdir" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"weights")
    assert {one.step for one in read(folder).checkpoints} == {1, 2, 3, 1764334622123456789}


def test_checkpoints_of_a_run_that_an_earlier_version_began_are_read(folder):
    old = {"name": "model.ckpt-8", "step": 8, "best": False, "bytes": {"data": 3}, "t": 5.0, "flaw": ""}
    (folder / "agent/formats/checkpoints/listing.py").write_text(
        f"import json\ndef main(folder):\n    print(json.dumps([{old}]))\n"
    )
    [one] = read(folder).checkpoints
    assert (one.name, one.size, one.written) == ("model.ckpt-8", 3, 5.0)


def test_the_learning_rate_is_read_from_the_event_files_of_all_attempts(folder):
    logdir = folder / "logdir"
    logdir.mkdir()
    graph, half = record(field(4, 2, b"") + bytes(1 << 17)), record(event(31, b"learning_rate", 0.75))[:-9]
    first = [event(1, b"learning_rate", 0.25), event(11, b"train_loss", 7.0), event(11, b"learning_rate", 0.5)]
    (logdir / "events.out.tfevents.1.gpu-0").write_bytes(graph + b"".join(map(record, first)) + half)
    no_number = record(event(12, b"learning_rate", float("nan")))
    (logdir / "events.out.tfevents.2.gpu-0").write_bytes(no_number)
    assert read(folder).learning_rate == ((1, 0.25), (11, 0.5))


def test_the_agent_and_what_it_copies_are_not_among_the_runs_files(folder):
    for name in ("config.py", "still/progress.jsonl", "logdir/model.ckpt-1.index"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    found = dict(read(folder).files)
    assert (list(found), found["config.py"]) == (["config.py", "job.json", "logdir/model.ckpt-1.index"], 1)


def test_a_long_event_file_is_read_at_both_ends_in_whole_lines(folder, monkeypatch, capsys):
    monkeypatch.setattr(report_records, "EVENT_BYTES", 300)
    lines = [f'{{"event": "train", "step": {step}, "t": {step}.0}}' for step in range(100)]
    (folder / "progress.jsonl").write_text("\n".join(lines) + "\n")
    found = read(folder)
    assert [event["step"] for event in found.events] == [0, 95, 96, 97, 98, 99]
    assert found.malformed == 0
    assert "the report reads" in capsys.readouterr().err


def test_what_is_no_event_among_the_lines_is_passed_over(folder):
    lines = ['{"event": "train", "step": 1, "loss": 2.0, "t": 3.0}', "5", '"text"', "[]", '{"t": 1}', "{", "null"]
    wrong = [
        '{"event": "time", "step": 1, "seconds_per_step": "x", "t": 3.0}',
        '{"event": "train", "step": null, "t": 1}',
    ]
    (folder / "progress.jsonl").write_text("\n".join([*lines, *wrong]))
    found = read(folder)
    assert ([one["event"] for one in found.events], found.malformed) == (["train"], 8)
    assert json.loads(json.dumps(dataclasses.asdict(found)))["events"]
