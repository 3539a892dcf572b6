"""The summary of a run's events: its size has a limit, and what the run's state follows from is never left out."""

import json

import pytest
from test_analysis_run_state import seen

from agent.records import run_snapshot
from agent.run import event_summary
from agent.run.context import Run
from microcluster.analysis.run_state import judge

BEGINNING = [{"event": "phase", "phase": "training", "t": 0.0}, {"event": "trainer", "value": "mine", "t": 0.0}]


def lines(events):
    return "".join(json.dumps(event, sort_keys=True) + "\n" for event in events)


def steps(first, last, **more):
    for step in range(first, last):
        yield {"event": "train", "loss": 5.0, "step": step, "t": step * 0.1, **more}
        yield {"event": "time", "seconds_per_step": 0.1, "step": step, "t": step * 0.1}


def test_of_many_steps_some_are_left_at_even_distances_and_all_of_the_last_ones(tmp_path):
    (tmp_path / "progress.jsonl").write_text(lines([*BEGINNING, *steps(0, 20_000)]))
    size, found = event_summary.read(str(tmp_path))
    assert size == (tmp_path / "progress.jsonl").stat().st_size
    trained = [event["step"] for event in found if event["event"] == "train"]
    assert found[:2] == BEGINNING
    assert trained[-event_summary.LAST :] == list(range(20_000 - event_summary.LAST, 20_000))
    early = trained[: -event_summary.LAST]
    gaps = [later - earlier for earlier, later in zip(early, early[1:], strict=False)]
    assert 100 <= len(early) <= 2 * event_summary.POINTS
    assert max(gaps) <= 3 * min(gaps)


def test_a_loss_that_is_no_number_an_alarm_and_an_evaluation_are_found_among_any_number_of_steps(tmp_path):
    rare = [
        {"event": "train", "loss": "nan", "step": 10_000, "t": 1000.0},
        {"event": "alarm", "cause": "slow", "text": "slow", "t": 1000.0},
        {"event": "validation", "loss": 2.0, "step": 10_000, "t": 1000.0},
        {"event": "metric", "name": "accuracy", "step": 10_000, "value": 0.5, "t": 1000.0},
    ]
    events = [*BEGINNING, *steps(0, 10_000), *rare, *steps(10_001, 20_000)]
    (tmp_path / "progress.jsonl").write_text(lines(events))
    _, found = event_summary.read(str(tmp_path))
    assert [event for event in found if event in rare] == rare
    # What a person is told is the same as of all events.
    few, every_one = (judge(seen(events=one, exit_code=None, alive=True)) for one in (found, events))
    assert few == every_one


def test_hundreds_of_metrics_do_not_make_a_look_large(tmp_path):
    named = ({"event": "metric", "name": f"m{n % 500}", "step": n, "value": 1.0, "t": n} for n in range(20_000))
    (tmp_path / "progress.jsonl").write_text(lines(named))
    _, found = event_summary.read(str(tmp_path))
    assert {event["name"] for event in found} == {f"m{n}" for n in range(500)}
    assert len(found) <= 3 * event_summary.MOST


def test_the_supervisor_keeps_the_summary_so_that_a_look_reads_the_last_megabyte_only(folder, monkeypatch):
    monkeypatch.setattr(event_summary, "EVERY_BYTES", 1000)
    run = Run(str(folder))
    for event in steps(0, 200):
        run.emit(event)
    events = folder / "progress.jsonl"
    summed, _ = json.loads((folder / "progress_summary.json").read_text())
    assert 0 <= events.stat().st_size - summed <= 1200
    # What is summed up is not read again.
    with events.open("r+b") as file:
        file.write(b"x" * (summed - 1))
    assert judge(run_snapshot.observe(str(folder))).step == 199


@pytest.mark.parametrize("broken", ["", "{", "[1000000, []]"])
def test_without_its_summary_a_run_is_read_from_the_beginning(tmp_path, broken):
    (tmp_path / "progress.jsonl").write_text(lines(BEGINNING))
    (tmp_path / "progress_summary.json").write_text(broken)
    assert event_summary.read(str(tmp_path))[1] == BEGINNING
