"""The parser of the training log on what OpenSeq2Seq 8681d381 itself printed: two ranks, this project's configuration, 30 steps.

``tests/recorded/training_log`` holds its lines as mpirun passed them on, with fewer sample sentences, variables and lines of configuration.
``best`` goes on for three steps after a best model of 300. When it saves one, OpenSeq2Seq prints nothing (utils/hooks.py).
"""

from typing import Any

import pytest

from agent.formats.logs.openseq2seq import Reader
from microcluster.analysis.records import curves
from microcluster.jobs.openseq2seq import METRICS
from tests.recorded import FOLDER

LOGS = FOLDER / "training_log"
NAME = "OpenSeq2Seq 8681d381 on TensorFlow 2.12 through our compatibility module"


def events_of(log: str) -> list[dict[str, Any]]:
    reader = Reader()
    lines = (LOGS / f"{log}.log").read_text(encoding="utf-8").splitlines()
    return [event for line in lines for event in reader.read(line)]


def values(log: str, event: str, *keys: str) -> list[Any]:
    found = [tuple(one[key] for key in keys) for one in events_of(log) if one["event"] == event]
    return [one[0] for one in found] if len(keys) == 1 else found


@pytest.mark.parametrize("log", sorted(path.stem for path in LOGS.glob("*.log")))
def test_the_first_line_says_what_trains(log):
    assert events_of(log)[0] == {"event": "trainer", "value": NAME}


def test_a_training_yields_its_losses_and_its_pace_at_their_steps():
    assert values("training", "train", "step", "loss") == [(0, 6.9269), (10, 6.5277), (20, 6.1529)]
    assert values("training", "time", "step", "seconds_per_step") == [(0, 1.631), (10, 1.03), (20, 0.928)]


def test_the_evaluations_of_a_training_are_at_its_start_by_the_schedule_and_at_its_end():
    found = curves([*events_of("training"), {"event": "checkpoint", "step": 30}, {"event": "end"}], 20, METRICS)
    measured = [(one["step"], one["loss"], one["bleu"]) for one in found.evaluations]
    assert measured == [(0, 6.9614, 0.1179), (20, 5.8609, 0), (30, 5.4748, 0)]


def test_a_training_begins_and_ends_with_what_the_judgement_rests_on():
    kinds = [event["event"] for event in events_of("training")]
    assert kinds[:3] == ["trainer", "started", "parameters"]
    assert kinds[-3:] == ["finished", "average_seconds_per_step", "average_objects_per_second"]


def test_a_resume_counts_its_losses_and_evaluations_from_the_checkpoint():
    events = [*events_of("training"), {"event": "checkpoint", "step": 30}, {"event": "end"}, *events_of("resume")]
    assert values("resume", "restored", "step") == [30]
    assert values("resume", "train", "step") == [30, 40]
    found = curves([*events, {"event": "checkpoint", "step": 45}, {"event": "end"}], 20)
    assert [one["step"] for one in found.evaluations] == [0, 20, 30, 30, 45]


def test_a_resume_from_a_best_model_counts_from_the_step_in_its_name():
    assert values("best", "restored", "step") == [300]
    assert values("best", "train", "step") == [300]
    assert values("best", "validation", "loss") == [3.5881, 3.4404]


def test_a_diverged_training_shows_nan_and_finishes_as_if_all_were_well():
    assert values("nan", "train", "loss") == [7.0826, "nan"]
    assert values("nan", "validation", "loss") == ["nan", "nan"]
    assert values("nan", "finished") == [()]


def test_a_killed_rank_is_named_with_its_signal():
    assert values("killed_rank", "rank-died", "rank", "node", "signal") == [(0, "gpu-0", 9)]


def test_sample_sentences_explain_nothing_and_the_words_of_mpirun_do():
    lines = (LOGS / "killed_rank.log").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if Reader().explains(line)]
    assert not any("EVAL" in line or "Train Source" in line for line in kept)
    assert any("exited on signal 9" in line for line in kept)
