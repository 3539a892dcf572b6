"""Malformed lines in a run's records are left out and counted; nothing that reads them fails."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_samples import CLUSTER, COST
from fake_machine import FakeMachine
from hypothesis import given
from hypothesis import strategies as st
from sampled_run import SampledRun
from test_analysis_run_state import seen

from microcluster.analysis import events, network_usage, run_questions
from microcluster.analysis.run_state import judge
from microcluster.commands import run_text
from microcluster.commands.status import status_text
from microcluster.jobs.openseq2seq import METRICS
from microcluster.remote import run_export
from microcluster.remote.job import AGENT

RUN = SampledRun(steps=300).events()
KINDS = sorted({*events.NEEDED, *events.MEASURES, *events.NAMES, "started", "finished", "evaluation"})
KEYS = sorted({"event", "value", "to", *events.TYPES})
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
    assert events.parse(f"{whole}\n{line}\n{whole}\n") == ((json.loads(whole),) * 2, 1)


def test_a_line_that_is_just_being_written_is_no_malformed_one() -> None:
    assert events.parse('{"event": "started"}\n{"event": "tr') == (({"event": "started"},), 0)
    assert events.parse("") == ((), 0)


def test_what_our_own_machines_write_is_all_sound() -> None:
    assert events.sound(RUN) == (tuple(RUN), 0)


@given(st.lists(NEARLY | ANYTHING, max_size=6))
def test_no_value_makes_a_reader_fail(values: list[object]) -> None:
    mixed = [*RUN, *values, *RUN[-3:]]
    found, left_out = events.sound(mixed)
    assert len(found) + left_out == len(mixed)
    outcome = judge(seen(events=mixed, alive=True, exit_code=None, now=9e9))
    status_text(CLUSTER, outcome, COST)
    run_text.report(CLUSTER, outcome, COST)
    run_questions.curves(found, 100, METRICS)
    run_questions.how_long(found)
    run_questions.gpus_used(found)
    network_usage.measured(found)
    network_usage.rates(found, "gpu-0")


def test_status_says_how_many_lines_were_left_out() -> None:
    outcome = judge(seen(events=[*seen()["events"], None, 7]))
    assert outcome.malformed == 2
    assert "could not be read, and are left out: 2" in status_text(CLUSTER, outcome, COST)
    assert "left out" not in status_text(CLUSTER, judge(seen()), COST)


def test_the_report_reads_over_a_value_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = FakeMachine()
    folder = f"/data/runs/{CLUSTER.run}"
    machine.files[f"{folder}/progress.jsonl"] = '{"event": "train", "step": "ten", "loss": [], "t": 1}\n'
    machine.files[f"{folder}/samples.jsonl"] = '{"event": "sample", "node": "gpu-0", "t": 1, "gpus": ["all"]}\n{}\n'
    monkeypatch.setattr(run_export, "_files", lambda *_: [])
    monkeypatch.setattr(run_export, "_data", lambda launcher, cluster: [])
    monkeypatch.setattr(run_export, "_asked", lambda *_: [])
    records = run_export.read(machine, CLUSTER)
    assert (records.events, records.malformed) == ((), 3)


def test_the_launcher_hands_on_where_a_line_was_malformed_but_for_the_one_that_is_being_written(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text('{"run": "a", "max_steps": 1}')
    (tmp_path / "progress.jsonl").write_text('{"event": "started"}\n{cut off\n' + "[" * 100_000 + '\n{"event": "tr')
    answer = subprocess.run(
        [sys.executable, AGENT, "records.run_snapshot", tmp_path], capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stdout)["events"] == [{"event": "started"}, None, None]
