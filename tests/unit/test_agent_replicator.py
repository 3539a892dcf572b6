"""Checkpoints are copied to another machine while a run trains; real processes of this computer."""

import threading
import time

import pytest
from sample_spec import MODELS
from supervised_run import carry_out, events_of, hurry, start, wait_for_end, write_job
from test_agent_file_formats import save as save_file

from agent.formats.checkpoints.log_folder import Checkpoints
from agent.records import run_snapshot
from agent.supervise import checkpoint_watch
from agent.supervise.checkpoint_watch import CheckpointWatch
from agent.supervise.health_rules import NOT_COPIED, HealthRules
from microcluster.analysis import run_state as judging
from microcluster.analysis.run_state import judge
from microcluster.core.polling import wait_until
from tests.tiny_checkpoint import save

BEST = "best_models/val_loss=2.0000-step-2"


@pytest.fixture
def watch(folder, run, monkeypatch):
    """Return what watches the checkpoints of a run with this job, look by look."""
    monkeypatch.setattr(checkpoint_watch, "RETRY_S", 0)

    def watching(**job):
        write_job(folder, **job)
        opened = run()
        return CheckpointWatch(opened, HealthRules(0.0, opened.spec), threading.Event())

    return watching


def files_of(name):
    return " ".join(f"logdir/{name}{part}" for part in (".data-00000-of-00001", ".index", ".meta"))


def copies(folder):
    return (folder / "copies").read_text().splitlines()


def test_every_new_checkpoint_is_copied_to_the_next_machine_with_the_whole_best_models_and_not_with_torn_ones(folder):
    save(folder / "logdir", "model.ckpt-2")
    save(folder / "logdir", BEST)
    save(folder / "logdir", "best_models/val_loss=1.0000-step-1", data=b"")
    (folder / "logdir" / "best_models" / "checkpoint").write_text("the framework's list")
    carry_out(folder, last=3, pace=0.1)
    lists = "logdir/checkpoint logdir/best_models/checkpoint"
    line = f"10.0.0.1 3 {files_of('model.ckpt-3')} {lists} {files_of(BEST)}"
    assert copies(folder)[-1] == line
    assert events_of(folder, "checkpoint")[-1]["step"] == 3
    copied = events_of(folder, "copied")[-1]
    assert (copied["to"], copied["best"]) == ("gpu-1", ["val_loss=2.0000-step-2"])
    assert 0 <= copied["lag_s"] < 240


def test_while_the_last_copy_is_made_the_supervisor_is_not_silent(folder, monkeypatch):
    monkeypatch.setattr(judging, "SUPERVISOR_SILENT_S", 3.0)
    hurry(folder, "supervise/supervisor.py", "EVERY_S = 5", "EVERY_S = 0.2")
    copy = f"touch {folder}/copying; while [ ! -e {folder}/go ]; do sleep 0.1; done"
    write_job(folder, copy=["sh", "-c", copy, "copy"])
    start(folder)
    wait_until("the copy to begin", (folder / "copying").exists, timeout_s=120, every_s=0.05)
    sampled = (folder / "samples.jsonl").stat().st_mtime
    wait_until("longer than a silence", lambda: time.time() > sampled + 4, timeout_s=60, every_s=0.1)
    assert judge(run_snapshot.observe(str(folder))).state == "running"
    (folder / "go").touch()
    assert wait_for_end(folder).state == "finished"


def test_a_new_best_model_alone_is_copied_too(folder, watch):
    watching = watch()
    save(folder / "logdir", "model.ckpt-1")
    watching.look()
    save(folder / "logdir", BEST)
    for _ in range(2):
        watching.look()
    assert [event["best"] for event in events_of(folder, "copied")] == [[], ["val_loss=2.0000-step-2"]]
    assert len(events_of(folder, "checkpoint")) == 1
    assert watching.rules.newest == (1, "model.ckpt-1"), "a checkpoint is life"


def test_a_run_that_ends_with_a_suspected_checkpoint_says_so_and_copies_the_whole_one(folder, watch):
    watching = watch(**MODELS)
    save_file(folder / "logdir", "model-3.pt")
    save_file(folder / "logdir", "model-4.pt", b"")
    watching.look(last=True)
    assert [(event["step"], event["text"]) for event in events_of(folder, "suspected")] == [(4, "model-4.pt is empty")]
    assert copies(folder) == ["10.0.0.1 3 logdir/model-3.pt"]


def test_a_suspected_checkpoint_alone_is_announced_and_copied_once_it_was_quiet(folder, watch):
    watching = watch(**MODELS)
    save_file(folder / "logdir", "model-4.pt", b"", age_s=5)
    watching.look()
    assert events_of(folder, "checkpoint") == []
    save_file(folder / "logdir", "model-4.pt", b"", age_s=60)
    watching.look()
    assert [event["suspicion"] for event in events_of(folder, "checkpoint")] == ["model-4.pt is empty"]
    assert copies(folder) == ["10.0.0.1 4 logdir/model-4.pt"]


def test_a_copy_that_fails_is_an_alarm(folder, watch):
    watching = watch(copy=["sh", "-c", "echo no route to host; exit 255"])
    save(folder / "logdir", "model.ckpt-1")
    watching.look()
    assert "no route to host" in watching.rules.active(0.0)[NOT_COPIED]


def test_a_look_that_fails_for_a_moment_does_not_end_the_copying(folder, watch, monkeypatch):
    def fails(checkpoints):
        raise OSError(24, "Too many open files")

    watching = watch()
    save(folder / "logdir", "model.ckpt-1")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "best_whole", fails)
        watching.look()
    assert events_of(folder, "copied") == []
    watching.look()
    assert [event["step"] for event in events_of(folder, "copied")] == [1]


def test_a_copy_that_takes_too_long_is_ended_before_the_next_one_begins(folder, watch, monkeypatch):
    monkeypatch.setattr(checkpoint_watch, "LIMITED", ["timeout", "--kill-after=5", "5"])
    slow = f"[ -e {folder}/pid ] || {{ sleep 600 & echo $! > {folder}/pid; wait; }}"
    watching = watch(copy=["sh", "-c", f"{slow}; ! grep -q sleep /proc/$(cat {folder}/pid)/cmdline"])
    save(folder / "logdir", "model.ckpt-1")
    watching.look()
    assert events_of(folder, "copied") == []
    watching.look()
    assert [event["step"] for event in events_of(folder, "copied")] == [1]


def test_when_the_next_machine_takes_no_copy_the_one_after_it_does_and_goes_on_doing_it(folder, watch):
    three = {"addresses": ["10.0.0.0", "10.0.0.1", "10.0.0.9"], "names": ["gpu-0", "gpu-1", "gpu-2"]}
    watching = watch(copy=["sh", "-c", f'echo "$1 $2" >> {folder}/copies; [ $1 != 10.0.0.1 ]', "copy"], **three)
    for step in (1, 20):
        save(folder / "logdir", f"model.ckpt-{step}")
        watching.look()
    assert copies(folder) == ["10.0.0.1 1", "10.0.0.9 1", "10.0.0.9 20"]
    assert [event["to"] for event in events_of(folder, "copied")] == ["gpu-2", "gpu-2"]


def test_the_parts_that_another_machine_has_written_are_gathered_and_copied_with_the_others(folder, watch):
    step = folder / "logdir" / "step-3"
    gather = f"echo $1 >> {folder}/gathered; [ $1 != over ] || cp -p {step}/rank0.pt {step}/rank1.pt"
    pattern = {"checkpoints": "file_formats", "checkpoint_options": {"pattern": r"step-(?P<step>\d+)"}}
    watching = watch(gather=["sh", "-c", gather, "gather"], **pattern)
    save_file(step, "rank0.pt")
    for last in (False, True):
        watching.look(last)
    last = "10.0.0.1 3 logdir/step-3/rank0.pt logdir/step-3/rank1.pt"
    assert copies(folder)[-1] == last, "a part saved after a look is in the next copy"
    asked = (folder / "gathered").read_text().split()
    assert asked == ["0", "over"], "after the end nothing is left to the program"


def test_when_a_machine_keeps_its_parts_what_is_here_is_copied_and_an_alarm_names_the_reason(folder, watch):
    watching = watch(gather=["sh", "-c", "echo no route to host; exit 1"], **MODELS)
    save_file(folder / "logdir", "model-3.pt")
    watching.look()
    assert copies(folder) == ["10.0.0.1 3 logdir/model-3.pt"]
    assert "no route to host" in watching.rules.active(0.0)[NOT_COPIED]
