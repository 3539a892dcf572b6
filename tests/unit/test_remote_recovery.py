"""What a run goes on from, in a folder as on the launcher."""

from __future__ import annotations

import json
import os

from test_remote_supervisor import end_run, folder, start, wait_for_end, write_job  # noqa: F401 - a fixture
from tiny_checkpoint import save

from remote.launcher import recovery, run_files


def test_every_rank_gets_the_pointer_and_the_index_of_what_was_chosen(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-10")
    save(folder / "logdir", "model.ckpt-20", index=b"")
    (folder / "logdir" / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-20"\n')
    run = run_files.Run(str(folder))
    assert recovery.latest_checkpoint(run) == ["logdir/checkpoint", "logdir/model.ckpt-10.index"]
    assert '"model.ckpt-10"' in (folder / "logdir" / "checkpoint").read_text()


def test_a_log_folder_without_a_checkpoint_is_put_aside_because_the_trainer_refuses_it(folder):  # noqa: F811
    (folder / "logdir" / "graph.pbtxt").touch()
    assert recovery.latest_checkpoint(run_files.Run(str(folder))) == []
    assert list((folder / "logdir").iterdir()) == []
    assert list(folder.glob("logdir.without-checkpoint-*/graph.pbtxt"))


def test_a_fresh_launcher_takes_the_copy_of_another_machine(folder):  # noqa: F811
    kept = folder.parent / "kept"
    save(kept, "model.ckpt-3")
    bring = ["sh", "-c", f"cp {kept}/* {folder}/logdir"]
    write_job(folder, last=6, copied=["echo", f"{recovery.MARK}3"], bring=bring)
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.step) == ("finished", 6)
    events = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events if event["event"] in ("brought_back", "resuming", "restored")] == [
        3,
        3,
        3,
    ]


def test_when_the_newest_copy_cannot_be_brought_the_next_one_is(folder):  # noqa: F811
    bring = f"[ $1 = 10.0.0.9 ] && exit 1; touch {folder}/brought"
    copied = f"case $1 in 10.0.0.9) echo {recovery.MARK}30 ;; *) echo {recovery.MARK}20 ;; esac"
    machines = {"addresses": ["10.0.0.0", "10.0.0.1", "10.0.0.9"], "names": ["gpu-0", "gpu-1", "gpu-2"]}
    write_job(folder, copied=["sh", "-c", copied, "copied"], bring=["sh", "-c", bring, "bring"], **machines)
    recovery.bring_back(run_files.Run(str(folder)))
    events = [json.loads(line) for line in (folder / "progress.jsonl").read_text().splitlines()]
    assert [(event["event"], event["from"], event["step"]) for event in events] == [
        ("not_brought_back", "gpu-2", 30),
        ("brought_back", "gpu-1", 20),
    ]
    assert (folder / "brought").exists()


def test_a_fresh_launcher_that_cannot_get_the_copy_does_not_begin_again_and_write_over_it(folder):  # noqa: F811
    write_job(folder, copied=["echo", f"{recovery.MARK}3"], bring=["sh", "-c", "echo cut off; exit 1"])
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.state, outcome.cause) == ("failed", "not-brought-back")
    assert "that of step 3 on gpu-1: cut off" in outcome.reason
    assert not list((folder / "logdir").iterdir())


def test_a_launcher_that_has_an_older_checkpoint_goes_on_from_it_when_it_cannot_get_the_copy(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-2")
    write_job(folder, copied=["echo", f"{recovery.MARK}3"], bring=["false"])
    start(folder)
    assert wait_for_end(folder).state == "finished"


def test_an_older_copy_than_what_is_here_is_left_where_it_is(folder):  # noqa: F811
    save(folder / "logdir", "model.ckpt-5")
    write_job(folder, copied=["echo", f"{recovery.MARK}3"], bring=["touch", str(folder / "brought")])
    recovery.bring_back(run_files.Run(str(folder)))
    assert not (folder / "brought").exists()


def test_a_full_disk_makes_room_but_never_of_what_is_gone_on_from(folder, monkeypatch):  # noqa: F811
    for step in (1, 2, 3):
        save(folder / "logdir", f"model.ckpt-{step}")
    full = os.statvfs_result((4096, 4096, 100, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(recovery.os, "statvfs", lambda path: full)
    recovery.latest_checkpoint(run_files.Run(str(folder)))
    assert sorted(path.name for path in (folder / "logdir").glob("*.index")) == [
        "model.ckpt-2.index",
        "model.ckpt-3.index",
    ]
