"""Looking at a run over a connection that gets lost."""

import dataclasses
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_machine import FACTS
from test_jobs_run_spec import CLUSTER

from agent.run import document
from agent.supervise import guard
from microcluster.jobs.cluster_facts import MachineLimits, Queue
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job
from microcluster.remote.errors import Completed, RemoteError, UnreachableError
from microcluster.remote.host import ANSWER_BYTES, Host


class Losing(Host):
    """This computer, whose first answers are lost."""

    def __init__(self, losses: int) -> None:
        super().__init__(FACTS, "root", "/nowhere")
        self.losses = losses

    def run(self, argv, *, stdin="", timeout_s=30.0, accept: Sequence[int] = (0,), answer_bytes=ANSWER_BYTES):  # noqa: ARG002
        if self.losses:
            self.losses -= 1
            raise UnreachableError("running `python3` on gpu-0: no answer after 30.0 s.")
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False)
        assert done.returncode in accept, done.stderr
        return Completed(done.returncode, done.stdout, done.stderr)

    def output(self, argv, doing: str, silent_s: float | None = None, stdin: bytes = b"") -> Iterator[bytes]:  # noqa: ARG002
        answer = self.run(argv, stdin=os.fsdecode(stdin)).stdout.encode()
        if answer:
            yield answer


def here(folder, **changes):
    """Return the facts of a run whose machine's disk is a folder here."""
    return dataclasses.replace(CLUSTER, mount_point=str(folder), run="abcdef012345", **changes)


def test_a_failed_look_is_repeated_and_a_silent_launcher_reported():
    assert job.observe(Losing(1), CLUSTER).state == "absent"
    with pytest.raises(UnreachableError, match="no answer after"):
        job.observe(Losing(2), CLUSTER)


def test_a_run_folder_of_an_earlier_version_names_the_next_step(tmp_path):
    known = here(tmp_path)
    folder = tmp_path / "runs" / "abcdef012345"
    folder.mkdir(parents=True)
    (folder / "job.json").write_text('{"run": "abcdef012345", "max_steps": 300}')
    with pytest.raises(RemoteError, match=r"another version of microcluster wrote it .*\(make up\)"):
        job.observe(Losing(0), known)


@pytest.mark.parametrize(
    ("version", "silent_s", "kept"), [(9, 0, True), (document.VERSION, 0, False), (9, 3600, False), (7, 0, False)]
)
def test_only_a_run_at_work_of_an_earlier_version_keeps_its_files(tmp_path, version, silent_s, kept):
    known = here(tmp_path, container=None)
    folder = RunFolder(known)
    job.place(Losing(0), folder.path, folder.texts())
    file = Path(folder.path) / "job.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": version}))
    (file.parent / "alive_at").write_text(str(time.monotonic() - silent_s))
    with (file.parent / "supervisor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert job._keeps_its_version(Losing(0), known) == kept


def test_a_graceful_stop_lets_a_program_that_watches_the_file_end_itself(tmp_path, monkeypatch):
    known = here(tmp_path, container=None)
    folder = tmp_path / "runs" / "abcdef012345"
    folder.mkdir(parents=True)
    usual = RunFolder(known).document
    monkeypatch.setattr(RunFolder, "document", usual._replace(limits=usual.limits._replace(stop_grace_s=60)))
    program = (
        f"until [ -e {folder}/stopped ]; do sleep 0.1; done; echo saved > {folder}/last; echo 0 > {folder}/exit_code"
    )
    with subprocess.Popen(["sh", "-c", program], env={"MICROCLUSTER_RUN": "abcdef012345", "PATH": os.environ["PATH"]}):
        assert job.stop_job([Losing(0)], known, graceful=True) == {}
    assert (folder / "last").read_text() == "saved\n"


def test_the_limits_of_a_guard_reach_a_run_that_is_under_way(tmp_path):
    known = here(tmp_path, guard=MachineLimits(idle_s=2700.0))
    folder = RunFolder(known)
    job.place(Losing(0), folder.path, folder.texts())
    assert job.observe(Losing(0), known).max_steps == 300
    placed = SimpleNamespace(path=lambda name: f"{folder.path}/{name}", spec=document.read(f"{folder.path}/job.json"))
    watched = guard.RunLimits(placed)
    assert (watched.verdict(2600.0, armed=True), watched.verdict(2700.0, armed=True)[0]) == (None, guard.IDLE)
    job.set_guard(Losing(0), known, MachineLimits(stop_at=1e9), now=1e9 - 3600)
    assert watched.verdict(2700.0, armed=True) is None, "by the clock of whoever gave it an hour is left"
    queued = dataclasses.replace(known, queue=Queue("gpu", 1, 4, 3600))
    job.set_guard(Losing(0), queued, MachineLimits(stop_at=1e9), now=1e9)
    assert watched.verdict()[0] == guard.LEASE_OVER


def test_a_runs_word_is_kept_also_on_a_drive_and_differs_elsewhere(tmp_path):
    def word(machines, **drive):
        known = dataclasses.replace(here(tmp_path / machines), **drive)
        return job._ensure_word([Losing(0)], known)

    first = word("a")
    assert word("a") == first != word("b")
    assert json.loads(RunFolder(here(tmp_path / "a"), word=first).texts()["job.json"])["word"] == first
    drive = str(tmp_path / "drive")
    assert word("1", shared_mount=drive) == word("2", shared_mount=drive), "on new machines"
    (tmp_path / "a/runs/abcdef012345/word").write_text("../../..\n")
    assert job.WORD.fullmatch(word("a")), "one that is none is not believed: it becomes part of a path here"


@pytest.mark.parametrize("grouped", [False, True])
def test_nodes_and_worlds_of_a_last_attempt_are_read_in_both_forms(grouped):
    last = {"names": ["gpu-0"], "addresses": ["10.0.0.1"], "checkpoint_options": {"worlds": [2, 4]}}
    found = job.LAST.validate_json(json.dumps(document.grouped(last) if grouped else last))
    assert found["machines"] == {"names": ["gpu-0"], "addresses": ["10.0.0.1"]}
    assert found["checkpoints"] == {"options": {"worlds": [2, 4]}}


def test_a_run_without_a_document_has_no_last_nodes():
    assert job.LAST.validate_json("{}") == {"machines": {}, "checkpoints": {}}
