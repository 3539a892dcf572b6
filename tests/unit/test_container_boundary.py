"""Boundary of a training program: its container sees another folder of the disk, and root follows no link in that."""

import os
import shutil
import subprocess

import pytest
from supervised_run import carry_out, events_of, let_run, write_job
from test_remote_job import Losing, here

from agent import IN_CONTAINER, inside, kill_run
from agent.supervise import resume
from agent.supervise.checkpoint_watch import CheckpointWatch
from agent.supervise.health_rules import Failed, HealthRules
from microcluster.jobs.run_spec import RunFolder, container_disk, mounts, sent_folder
from microcluster.remote import docker, job, report_records
from tests.tiny_checkpoint import save

RUN = "abcdef012345"


@pytest.fixture
def disk(tmp_path):
    """Return a data disk as an earlier version has left it: a run that ended, and a data set."""
    run = tmp_path / "runs" / RUN
    (run / "logdir").mkdir(parents=True)
    (run / "word").write_text("0a1b2c\n")
    (run / "progress.jsonl").write_text('{"event": "train", "step": 1}\n')
    (run / "logdir" / "model-1.pt").write_text("weights")
    for name in ("debian_en_de", "docker", "staging", "lost+found"):
        (tmp_path / name).mkdir()
    return tmp_path


def divide(disk):
    subprocess.run(("sh", "-c", docker.SEPARATE_DISK, "separate", disk, container_disk(disk)), check=True)


def separate(disk):
    argv = ("sh", "-c", job.SEPARATE_RUN, "separate", disk / "runs" / RUN, container_disk(disk), disk / "wmt16")
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_the_container_gets_the_disks_data_but_neither_docker_nor_runs(disk):
    divide(disk)
    divide(disk)
    assert sorted(os.listdir(container_disk(disk))) == ["debian_en_de", "staging"]
    assert (disk / "debian_en_de").resolve() == disk / "container" / "debian_en_de"
    assert not (disk / "staging").exists(), "where root would write through what a program left"
    assert disk.stat().st_mode & 0o777 == 0o755


def test_a_container_sees_its_own_folder_and_only_reads_what_was_sent():
    assert mounts("/data") == ("-v", "/data/container:/data", "-v", "/data/sent:/data/sent:ro")
    assert sent_folder("0123", "/data") == "/data/sent/0123"


def test_a_run_of_an_earlier_version_goes_on_with_checkpoints_and_records(disk):
    divide(disk)
    assert separate(disk).returncode == 0
    assert separate(disk).returncode == 0
    run, seen = disk / "runs" / RUN, disk / "container" / "runs" / RUN
    assert sorted(os.listdir(run)) == [IN_CONTAINER, "progress.jsonl", "word"]
    assert inside(str(run)) == str(run / IN_CONTAINER)
    assert (disk / "wmt16").readlink() == disk / "container" / "wmt16", "where root finds what the container makes"
    assert (run / IN_CONTAINER).resolve() == seen
    assert (seen / "logdir" / "model-1.pt").read_text() == "weights"


def test_a_record_that_a_program_replaced_by_a_link_is_not_used(disk):
    for name, target in (("job.log", "/etc/passwd"), ("exit_code", f"{disk}/secret")):
        (disk / "runs" / RUN / name).symlink_to(target)
    divide(disk)
    separate(disk)
    assert sorted(os.listdir(disk / "runs" / RUN)) == [IN_CONTAINER, "progress.jsonl", "word"]


def test_a_run_is_moved_through_no_link_that_a_program_planted(disk):
    divide(disk)
    (disk / "etc").mkdir()
    (disk / "container" / "runs").symlink_to(disk / "etc")
    assert separate(disk).returncode != 0
    assert list((disk / "etc").iterdir()) == []


def test_what_is_placed_for_root_lies_outside_of_the_container(disk):
    divide(disk)
    known = here(disk)
    folder = RunFolder(known)
    separate(disk)
    job.place(Losing(0), folder.path, folder.texts())
    assert not (disk / "container" / "runs" / RUN / "agent").exists()
    assert not (disk / "runs" / RUN / "logdir").exists()
    files = dict(report_records._files(Losing(0), folder.path))
    assert files["logdir/model-1.pt"] == len("weights")
    assert "job.json" in files and not [name for name in files if name.startswith("agent/")]


@pytest.mark.parametrize("mark", ["../planted", "../../planted", "/tmp/planted", "a b"])
def test_a_mark_of_a_process_leads_to_no_folder_but_a_run(tmp_path, mark):
    (tmp_path / "runs").mkdir()
    (tmp_path / "planted").mkdir()
    kill_run.mark_stopped(str(tmp_path / "runs"), [mark])
    assert list((tmp_path / "planted").iterdir()) == []


def test_a_mark_of_spoilt_bytes_keeps_nobody_from_ending_a_run():
    sleeping = subprocess.Popen(["sleep", "60"], env={b"MICROCLUSTER_RUN": b"\xff\xfe"})
    try:
        assert kill_run.find("only", "another") == {}
    finally:
        sleeping.kill()
        sleeping.wait()


@pytest.fixture
def container_folder(folder):
    """Return what the container of the run sees as its folder: Docker's stand-in runs each command with that folder in place of the other."""
    seen = folder.parents[1] / "container" / "runs" / folder.name
    shutil.copytree(folder, seen)
    shutil.rmtree(folder / "logdir")
    (folder / IN_CONTAINER).symlink_to(seen)
    script = f"""import os, sys
words = [word.replace({str(folder)!r}, {str(seen)!r}) for word in sys.argv[sys.argv.index("box") + 1:]]
os.execvp(words[0], words)
"""
    tool = folder.parents[1] / "bin" / "docker"
    tool.write_text(f"#!/usr/bin/env python3\n{script}")
    return seen


def test_a_run_trains_saves_and_resumes_in_its_containers_folder(folder, container_folder):
    for where in (container_folder, folder):
        write_job(where, last=3)
    shutil.copy(container_folder / "job.json", folder / "job.json")
    text = (folder / "job.json").read_text().replace(str(container_folder), str(folder))
    (folder / "job.json").write_text(text)
    (container_folder / "stopped").touch()
    assert carry_out(folder).step == 3
    assert (container_folder / "logdir" / "checkpoint").exists() and not (folder / "logdir").exists()
    assert not (container_folder / "stopped").exists(), "of an earlier attempt"
    save(container_folder / "logdir", "model.ckpt-9", index=b"")
    (folder / "job.json").write_text(text.replace('"max_steps": 3', '"max_steps": 4'))
    carry_out(folder)
    assert [event["step"] for event in events_of(folder, "resuming")] == [3]
    assert list(container_folder.glob("logdir.torn-*")) and not list(folder.glob("logdir.torn-*"))


def test_the_records_go_with_a_copy_and_come_back_with_it(folder, container_folder, run):
    write_job(folder)
    let_run(
        container_folder,
        "copy",
        ["sh", "-c", f"cp {container_folder}/progress.jsonl {container_folder}/copied", "copy"],
    )
    save(container_folder / "logdir", "model.ckpt-3")
    opened = run()
    CheckpointWatch(opened, HealthRules(0.0, opened.spec), None).look(last=True)
    assert '"checkpoint"' in (container_folder / "copied").read_text()
    brought = '{"event": "train", "step": 7}\nnonsense\n["no event"]\n'
    let_run(
        container_folder, "bring", ["sh", "-c", f"printf '%s' '{brought}' > {container_folder}/progress.jsonl", "bring"]
    )
    assert resume.brought(opened, 7, "10.0.0.1", [])
    lines = (folder / "progress.jsonl").read_text().splitlines()
    assert lines[0] == '{"event": "train", "step": 7}'
    assert "nonsense" not in lines and '["no event"]' not in lines
    assert any('"checkpoint"' in line for line in lines), "what the machine itself had"


def test_a_checkpoint_is_put_aside_by_the_container_and_not_by_root(folder, container_folder, run):
    save(container_folder / "logdir", "model.ckpt-4", index=b"")
    (folder.parents[1] / "bin" / "docker").write_text("#!/bin/sh\necho no container >&2; exit 1\n")
    with pytest.raises(Failed, match="no container"):
        resume.latest_checkpoint(run())
    assert (container_folder / "logdir" / "model.ckpt-4.index").exists(), (
        "where a link could lead root out of the folder"
    )
