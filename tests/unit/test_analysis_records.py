"""Reading of a run's records: no malformed line, and each evaluation at its step, which the log itself does not say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_samples import CLUSTER, COST
from hypothesis import given
from hypothesis import strategies as st
from sampled_run import SampledRun
from test_analysis_run_state import seen

from microcluster.analysis import records, run_questions, samples
from microcluster.analysis.records import curves
from microcluster.analysis.run_state import judge
from microcluster.display import run_text
from microcluster.jobs.openseq2seq import METRICS
from microcluster.remote.job import AGENT
from microcluster.run.status import status_text

RUN = SampledRun(steps=300).events()
KINDS = sorted({*records.NEEDED, "started", "finished", "evaluation"})
KEYS = sorted({"event", "to", *records.TYPES})
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=4,
)
NEARLY = st.builds(
    lambda kind, more: {"event": kind, "t": 1100.0, **more},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=8),
)


@pytest.mark.parametrize("name", ["a\0b", "\x1b[2J", "\ud800", "\n", "a" * 81, "\u202e"])
def test_a_metric_whose_name_cannot_be_shown_is_malformed(name: str) -> None:
    good = {"event": "metric", "name": "accuracy", "step": 1, "value": 0.5}
    assert records.sound([good, good | {"name": name}]) == ((good,), 1)


def test_of_too_many_metrics_the_first_are_kept_with_all_their_points() -> None:
    every = [
        {"event": "metric", "name": f"m{number}", "step": step, "value": 0.5}
        for step in (1, 2)
        for number in range(300)
    ]
    kept, malformed = records.sound([*every, {"event": "train", "step": 3}])
    assert (len(kept), malformed) == (2 * records.MOST_METRICS + 1, 600 - 2 * records.MOST_METRICS)


@pytest.mark.parametrize(
    "line",
    [
        *('"text"', "7", "null", "[]", "{}", '{"event": 7}', '{"event": "train", "step": "x", "loss": 1.0, "t": 1}'),
        *('{"event": "train", "step": 1, "loss": "much"}', '{"event": "time", "step": 1, "seconds_per_step": NaN}'),
        *('{"event": "sample", "node": "gpu-0", "t": 1, "gpus": ["98"]}', '{"event": "phase", "phase": "training"}'),
        *('{"event": "sample", "node": "gpu-0", "t": 1e400}', '{"event": "alarm", "t": 1}', "[" * 100_000, "{cut off"),
        *('{"event": "bleu", "score": true}', '{"event": "parameters", "value": "many"}'),
    ],
)
def test_a_malformed_line_is_left_out_and_counted(line: str) -> None:
    whole = '{"event": "started", "t": 1.0}'
    assert records.parse(f"{whole}\n{line}\n{whole}\n") == ((json.loads(whole),) * 2, 1)


def test_records_of_our_machines_are_sound_even_with_an_unfinished_last_line() -> None:
    assert records.parse('{"event": "started"}\n{"event": "tr') == (({"event": "started"},), 0)
    assert records.parse("") == ((), 0)
    assert records.sound(RUN) == (tuple(RUN), 0)


@given(st.lists(NEARLY | ANYTHING, max_size=6))
def test_no_value_makes_a_reader_fail(values: list[object]) -> None:
    mixed = [*RUN, *values, *RUN[-3:]]
    found, left_out = records.sound(mixed)
    assert len(found) + left_out == len(mixed)
    outcome = judge(seen(events=mixed, alive=True, exit_code=None, now=9e9))
    status_text(CLUSTER, outcome, COST)
    run_text.report_rows(CLUSTER, outcome, COST)
    curves(found, 100, METRICS)
    run_questions.how_long(found)
    run_questions.gpus_used(found)
    samples.traffic(found)
    samples.link_rates(found, "gpu-0")


def test_status_says_how_many_lines_were_left_out() -> None:
    outcome = judge(seen(events=[*seen()["events"], None, 7]))
    assert outcome.malformed == 2
    assert "could not be read, and are left out: 2" in status_text(CLUSTER, outcome, COST)
    assert "left out" not in status_text(CLUSTER, judge(seen()), COST)


def test_malformed_lines_are_reported_except_the_one_still_being_written(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"run": "a", "max_steps": 1}')
    (tmp_path / "progress.jsonl").write_text('{"event": "started"}\n{cut off\n' + "[" * 100_000 + '\n{"event": "tr')
    answer = subprocess.check_output([sys.executable, AGENT, "records.run_snapshot", tmp_path])
    assert json.loads(answer)["events"] == [{"event": "started"}, None, None]


def test_a_loss_and_a_metric_of_any_size_are_shown() -> None:
    grown = [{"event": "train", "step": 22, "loss": 3e21, "t": 2.0}]
    grown += [{"event": "metric", "name": "grad_norm", "step": 22, "value": -4e30, "t": 2.0}]
    outcome = judge(seen(events=[*seen()["events"], *grown]))
    assert (outcome.train_loss, outcome.metrics, outcome.malformed) == (3e21, {"grad_norm": -4e30}, 0)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_metric_that_is_no_number_is_shown_but_not_plotted(value: str) -> None:
    norms = [{"event": "metric", "name": "grad_norm", "step": step, "value": 0.5, "t": 2.0} for step in (20, 21)]
    norms[1]["value"] = value
    outcome = judge(seen(events=[*seen()["events"], *norms]))
    assert (outcome.metrics, outcome.malformed) == ({"grad_norm": value}, 0)
    assert f"grad_norm {value}" in status_text(CLUSTER, outcome, COST)
    assert curves(norms).metrics == {"grad_norm": [(20, 0.5)]}
    assert records.sound([norms[0] | {"value": "a word"}])[1] == 1


def train(*steps):
    return [{"event": "train", "step": step, "loss": 4.0, "t": float(step)} for step in steps]


def evaluated(loss, score=None):
    block = [{"event": "evaluation", "t": 0.0}, {"event": "validation", "loss": loss, "t": 0.0}]
    return [*block, *([] if score is None else [{"event": "bleu", "score": score, "t": 0.0}])]


def steps_of(events, eval_steps=None):
    return [(one["step"], one["loss"]) for one in curves(events, eval_steps).evaluations]


STARTED = {"event": "started"}
FIRST = [STARTED, *evaluated(9.0), *train(1, 101), *evaluated(0.0652), *train(201)]
AT_300 = [*evaluated(0.0488), {"event": "finished"}, {"event": "checkpoint", "step": 300}, {"event": "end"}]
PHASES = [{"event": "phase", "phase": name} for name in ("preparing", "preflight", "training")]


def test_evaluations_are_placed_by_schedule_and_not_at_the_next_loss_line():
    events = [STARTED, *evaluated(9.0), *train(1, 101), *evaluated(5.0), *train(201, 301), *evaluated(4.0), *train(401)]
    assert steps_of(events, 150) == [(0, 9.0), (150, 5.0), (401, 4.0)], "300 is before the line of 301: not believed"
    assert steps_of(events) == [(1, 9.0), (201, 5.0), (401, 4.0)]


def test_the_last_evaluation_keeps_its_step_when_an_older_checkpoint_is_resumed():
    again = [*PHASES, {"event": "checkpoint", "step": 200}, {"event": "restored", "step": 300}]
    found = steps_of([*FIRST, *AT_300, *again, *evaluated(0.05), *train(301)], 200)
    assert found == [(0, 9.0), (200, 0.0652), (300, 0.0488), (300, 0.05)]


def test_every_evaluation_has_a_step_even_before_the_next_loss_line():
    assert [step for step, _ in steps_of([*FIRST, *AT_300])] == [1, 201, 300]
    assert steps_of([STARTED, *evaluated(9.0), *train(1, 101, 151), *evaluated(5.0)], 200)[-1] == (200, 5.0)


def test_a_resumed_attempt_counts_its_schedule_from_where_it_began():
    resumed = [{"event": "restored", "step": 300}, *evaluated(3.0), *train(301, 401), *evaluated(2.0), *train(501)]
    assert steps_of(resumed, 150) == [(300, 3.0), (450, 2.0)]


def resumed(step, *steps):
    return [{"event": "resuming", "step": step, "from": "model"}, *train(*steps)]


@pytest.mark.parametrize(
    ("events", "kept"),
    [
        pytest.param([*train(*range(1, 36)), *resumed(5, *range(31, 41))], range(1, 41), id="updates; by epoch"),
        pytest.param([*train(1, 2, 3, 4), *resumed(2000, 3, 4, 5)], range(1, 6), id="epochs; by update"),
        pytest.param([*train(*range(0, 350, 10)), *resumed(300, *range(310, 400, 10))], range(0, 400, 10), id="alike"),
        pytest.param([*train(0, 100, 200, 300), *resumed(250, 300, 400)], range(0, 500, 100), id="between two lines"),
        pytest.param([*train(1, 2, 3), {"event": "started"}, *train(1, 2)], (1, 2), id="from scratch"),
        pytest.param([*train(1, 2, 3), *resumed(2)], (1, 2, 3), id="nothing is repeated yet"),
    ],
)
def test_of_a_resume_only_what_is_printed_again_is_forgotten(events, kept):
    assert [step for step, _ in curves(events).train] == list(kept)


def test_a_score_belongs_to_its_evaluation_and_may_be_missing():
    events = [*evaluated(9.0, 0.1), *train(1), *evaluated(8.0), *train(2)]
    assert [one.get("bleu") for one in curves(events, metrics=METRICS).evaluations] == [0.1, None]
