"""What who looks at a run is told while a clock is set or the run ends: nothing wrong."""

import json
import time

from supervised_run import hold, hurry, start, wait_for_end, write_job

from agent.records import run_snapshot
from agent.run import records
from microcluster.analysis.run_state import judge
from microcluster.core.polling import wait_until

STEPPED = """
import time
real = time.time
def stepped():
    with open({by!r}) as file:
        return real() + float(file.read())
time.time = stepped
"""


def samples(folder):
    path = folder / "samples.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_who_looks_sees_the_phase_that_a_run_has_entered(folder, run):
    write_job(folder)
    run().enter("staging")
    assert run_snapshot.observe(str(folder))["phase"] == "staging"


def test_the_log_has_what_a_program_outside_the_container_says(folder, run):
    write_job(folder)
    heard = []
    opened = run()
    with opened.log:
        assert opened.do_outside(["sh", "-c", "echo out; echo err >&2; exit 3"], heard.append) == 3
    assert (folder / "job.log").read_text().endswith("out\nerr\n") and heard == ["out", "err"]


def test_a_clock_that_steps_by_twenty_minutes_to_and_fro_ends_nothing(folder):
    by = folder / "stepped_by"
    by.write_text("0")
    (folder / "agent" / "stepped.py").write_text(STEPPED.format(by=str(by)))
    usual = "import json\n"
    hurry(folder, "supervise/prepare.py", usual, f"{usual}from agent import stepped\n")
    held = hold(folder)
    write_job(folder, stall_s=600, preflight_skipped="the machines' clocks are of no interest here")
    start(folder)
    told = folder / "progress.jsonl"
    wait_until("a step", lambda: '"step": 2' in told.read_text(), timeout_s=120, every_s=0.05)
    for step_s in (1200, -1200):
        by.with_name("by").write_text(str(step_s))
        by.with_name("by").rename(by)

        def after_the_step(step_s=step_s):
            return [one for one in samples(folder) if abs(one["t"] - time.time() - step_s) < 600]

        wait_until("samples after the step", lambda look=after_the_step: len(look()) >= 4, timeout_s=120, every_s=0.05)
        assert judge(run_snapshot.observe(str(folder))).state == "running"
    held.unlink()
    assert wait_for_end(folder).state == "finished"
    assert '"alarm"' not in (folder / "progress.jsonl").read_text()


def test_who_looks_takes_no_step_of_the_clock_for_silence_and_sees_an_end_that_comes_meanwhile(folder, monkeypatch):
    held = hold(folder)
    start(folder)
    wait_until("a sample", lambda: samples(folder), timeout_s=120, every_s=0.05)
    for step_s in (1200, -1200):
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda now=time.time, step_s=step_s: now() + step_s)
            assert judge(run_snapshot.observe(str(folder))).state == "running"

    def looks_long(path):
        held.unlink()
        wait_until("the run's end", lambda: not records.is_alive(path), timeout_s=240, every_s=0.05)
        return ""

    monkeypatch.setattr(run_snapshot, "why_checkpoints_silent", looks_long)
    assert judge(run_snapshot.observe(str(folder))).state == "finished"
