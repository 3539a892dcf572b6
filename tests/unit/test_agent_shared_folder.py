"""A drive that does not answer is told within a limit, named as the cause, never taken for an empty one; and work in parallel."""

import json
import os
import threading

import pytest
from supervised_run import write_job
from test_agent_health_rules import watched

from agent import machine
from agent.machine import parallel
from agent.supervise import supervisor
from agent.supervise.health_rules import DRIVE_LOST, DRIVE_LOST_S, RANK_DIED, ending


def sampled(drive, gpus=({"utilisation": 90},)):
    return {"gpus": list(gpus), "free_bytes": 1 << 40, "drive": drive}


def test_a_drive_that_hangs_is_told_within_the_limit_and_one_that_is_gone_with_its_reason(tmp_path, monkeypatch):
    assert machine.why_silent(str(tmp_path)) == ""
    assert "No such file or directory" in machine.why_silent(str(tmp_path / "gone"))
    hangs = tmp_path / "ls"
    hangs.write_text("#!/bin/sh\nexec sleep 60\n")
    hangs.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(machine, "LIST_TIMEOUT_S", 0.2)
    assert machine.why_silent("/mnt/drive") == "no answer after 0.2 s"


def test_a_drive_that_stays_silent_ends_the_run_and_explains_the_death_of_a_rank():
    rules = watched()
    rules.observe_sample("gpu-0", sampled("no answer for 8 s"), 0.0)
    rules.observe_sample("gpu-1", sampled(""), 0.0)
    rules.observe({"event": RANK_DIED, "text": "rank 0 on gpu-0 ended with exit code 1"}, 1.0)
    assert ending(rules.active(DRIVE_LOST_S - 1, ended=True)) == RANK_DIED
    found = rules.active(DRIVE_LOST_S)
    assert ending(found) == DRIVE_LOST
    assert found[DRIVE_LOST].endswith("does not answer gpu-0 (no answer for 8 s), for 60 s and more")


def test_a_drive_that_answers_again_in_time_ends_nothing():
    rules = watched()
    rules.observe_sample("gpu-0", sampled("no answer for 8 s"), 0.0)
    rules.observe_sample("gpu-0", sampled(""), DRIVE_LOST_S - 1)
    rules.observe_sample("gpu-0", sampled("no answer for 8 s"), DRIVE_LOST_S)
    assert DRIVE_LOST not in rules.active(DRIVE_LOST_S + 1)


def test_ranks_that_ended_while_the_drive_does_not_answer_name_the_drive(folder, ended, tmp_path):
    drive = tmp_path / "drive"
    write_job(folder, train=["sh", "-c", "echo cannot save; exit 1"], shared=str(drive), preflight_skipped="not here")
    facts = json.loads((folder / "facts.json").read_text())
    (folder / "facts.json").write_text(json.dumps({**facts, "drive": "Transport endpoint is not connected"}))
    cause, why, lines = ended(supervisor.carry_out)
    assert (cause, lines[-1]) == (DRIVE_LOST, "cannot save")
    assert "does not answer gpu-0 and gpu-1 (Transport endpoint is not connected)" in why


def test_work_in_parallel_is_answered_in_order_and_fails_after_all_have_ended():
    second_is_done, ended = threading.Event(), []

    def act(number):
        if number == 1:
            assert second_is_done.wait(30)
        ended.append(number)
        second_is_done.set()
        return 10 // number

    assert parallel(act, [1, 2]) == [10, 5]
    with pytest.raises(ZeroDivisionError):
        parallel(act, [0, 3, 2])
    assert sorted(ended) == [0, 1, 2, 2, 3]
