"""The processes of a run as real ones; ssh is a script that runs its words here."""

from __future__ import annotations

import json
import sys
import time

from sample_spec import process
from supervised_run import end_run, start, wait_for_end, write_job

STEP = "echo '*** Global step 3: ***     Train loss: 3.5 '"


def carried_out(folder, *processes):
    write_job(folder, processes=list(processes), preflight_skipped="not needed here", end=["true"])
    start(folder)
    return wait_for_end(folder)


def test_processes_start_by_their_order_on_their_nodes_with_their_environment(folder):
    place = f'echo "$ROLE $MICROCLUSTER_RUN" >> {folder}/begun; {STEP}'
    word = {"environment": {"ROLE": "worker"}, "order": 1}
    first = process("sh", "-c", place.replace(STEP, "sleep 1"), role="scheduler", environment={"ROLE": "scheduler"})
    second = process("sh", "-c", f"sleep 0.5; {place}", role="worker", node=1, **word)
    assert carried_out(folder, second, first).reason == "there is no checkpoint of step 3"
    begun = (folder / "begun").read_text().splitlines()
    assert begun == [f"scheduler {folder.name}", f"worker {folder.name}"]
    assert "Global step 3" in (folder / "job.log").read_text()


def test_a_process_that_fails_ends_all_and_is_named_with_its_node(folder):
    waits = process("sh", "-c", "exec sleep 300", role="server", ends_run=False)
    fails = process("sh", "-c", "echo out of memory; exit 7", role="worker", node=1)
    outcome = carried_out(folder, waits, fails)
    assert (outcome.state, outcome.reason) == ("failed", "worker on gpu-1 ended with exit code 7")
    assert end_run(folder)["ended"] == 0


def test_a_process_with_a_name_is_named_in_each_of_its_lines_and_when_it_dies(folder):
    wrapper = [sys.executable, str(folder / "agent"), "rank_wrapper", str(folder / "notes")]
    (folder / "note").write_text(f"cat {folder}/notes")
    waits = process("sh", "-c", "echo hello; exec sleep 300", role="worker", name="worker 0")
    dies = process(*wrapper, "sh", "-c", "sleep 1; kill -9 $$", role="server", name="server 1", node=1)
    write_job(
        folder,
        processes=[waits, dies],
        preflight_skipped="not needed here",
        end=["true"],
        ended=["sh", str(folder / "note")],
    )
    start(folder)
    outcome = wait_for_end(folder)
    assert (outcome.cause, outcome.reason[:8]) == ("rank-died", "server 1")
    assert outcome.reason.endswith("ended with signal 9")
    assert "[worker 0] hello" in (folder / "job.log").read_text().splitlines()


def test_a_process_that_does_not_matter_is_ended_when_those_that_matter_have_ended(folder):
    waits = process("sh", "-c", "exec sleep 300", role="server", ends_run=False)
    workers = [process("sh", "-c", f"sleep {n}; echo {n} >> {folder}/over", node=n, role="worker") for n in (0, 1)]
    began = time.monotonic()
    outcome = carried_out(folder, waits, *workers)
    assert time.monotonic() - began < 250
    assert (folder / "over").read_text() == "0\n1\n", "the first that ends well does not end the run"
    assert json.loads((folder / "exit_code").read_text()) == 0
    assert outcome.reason.startswith("there is no checkpoint of step 3")
    assert end_run(folder)["ended"] == 0
