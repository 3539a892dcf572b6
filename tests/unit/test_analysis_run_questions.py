"""The questions that are asked of every run, answered from its events alone."""

from dataclasses import replace

import pytest
from launching import launched, on_gpus, transformer
from test_jobs_kind import HOROVOD
from test_jobs_run_spec import CLUSTER

from microcluster.analysis import records, run_questions
from microcluster.jobs.openseq2seq import METRICS
from microcluster.jobs.run_spec import RunFolder

TRANSFORMER = transformer(model="transformer-base", dataset="wmt16-en-de")
EXPECTED = RunFolder(replace(CLUSTER, job=TRANSFORMER)).document.expected
OWN = launched(on_gpus(HOROVOD, "another")).document.expected
BASE = TRANSFORMER.planned_rate, EXPECTED.warmup_steps


def evaluated(*losses: float) -> records.Curves:
    points = [(100 * number, float(loss)) for number, loss in enumerate(losses)]
    return records.Curves(train=points, evaluations=[{"step": step, "loss": loss} for step, loss in points])


def test_times_that_hold_start_up_or_an_evaluation_are_no_pace() -> None:
    times = [{"event": "time", "step": step, "seconds_per_step": 1.0 + step} for step in (0, 1, 2, 3)]
    events = [{"event": "started"}, *times[:2], {"event": "validation", "loss": 4.0}, *times[2:]]
    assert [step for step, _ in records.curves(events).pace] == [1, 3]


def test_a_nan_loss_is_not_plotted_and_evaluation_scores_are() -> None:
    assert records.curves([{"event": "train", "step": 0, "loss": "nan"}]).train == []
    events = [{"event": "validation", "loss": 5.0}, {"event": "bleu", "score": 0.25}]
    found = records.curves([*events, {"event": "train", "step": 1, "loss": 8.0}], metrics=METRICS)
    assert found.metrics == {"bleu": [(1, 0.25)]}


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ((5, 4, 3, 2.5, 2.2, 2.0), "No: over the last third of the run its validation loss still fell by"),
        ((5, 3, 2, 1.62, 1.615, 1.614), "As far as this data allows: over the last third the validation loss fell by"),
        ((5, 3, 1.6, 1.7, 1.9), "As far as this data allows: over the last third the validation loss rose by 11.8%"),
        ((0.0, 0.0, 0.0), "As far as"),
        ((5, 4), "Unknown: there are fewer than three"),
    ],
)
def test_a_loss_that_still_falls_is_not_fully_trained(losses: tuple[float, ...], expected: str) -> None:
    assert run_questions.trained_enough(evaluated(*losses)).answer.startswith(expected)


def test_a_validation_loss_that_rises_again_is_overfitting_and_names_the_step() -> None:
    answer = run_questions.overfitted(evaluated(5, 3, 1.6, 1.7, 1.9)).answer
    assert answer.startswith("Yes: the validation loss was lowest at step 200 (1.6000)")
    assert "fewer than three" in run_questions.overfitted(evaluated(5, 4)).answer


def test_what_was_lost_with_an_attempt_is_in_no_curve() -> None:
    def lines(*steps: int) -> list[dict[str, object]]:
        return [{"event": "train", "step": step, "loss": float(step)} for step in steps]

    crashed = [*lines(0, 100, 200), {"event": "validation", "loss": 9.0}, *lines(300)]
    found = records.curves([{"event": "started"}, *crashed, {"event": "restored", "step": 200}, *lines(300, 400)])
    assert [step for step, _ in found.train] == [0, 100, 200, 300, 400]
    assert found.validation == []
    again = records.curves([*crashed, {"event": "started"}, *lines(0, 100)])
    assert [step for step, _ in again.train] == [0, 100]


def test_the_time_of_all_attempts_counts_without_the_pauses_between_them() -> None:
    phases = [("preparing", 0), ("training", 10), ("preparing", 90), ("training", 100)]
    events = [{"event": "phase", "phase": phase, "t": t} for phase, t in phases]
    events += [{"event": "end", "t": 70}, {"event": "end", "t": 130}]
    assert run_questions.how_long(events).figures == {"training_s": 90, "whole_s": 130}


def test_a_training_without_a_recorded_end_counts_to_its_last_heartbeat() -> None:
    crashed = [{"event": "phase", "phase": "training", "t": 0}, {"event": "train", "step": 9, "loss": 2.0, "t": 50}]
    begun = (("preparing", 40_000), ("training", 40_100))
    resumed = [{"event": "phase", "phase": phase, "t": t} for phase, t in begun]
    samples = [{"event": "sample", "t": 60}, {"event": "sample", "t": 40_130}]
    found = run_questions.how_long([*crashed, *resumed, {"event": "end", "t": 40_150}, *samples])
    assert found.figures == {"training_s": 110, "whole_s": 40_150}
    assert found.answer.startswith("1 min 50 s of training in 11 h 9 min")


def test_the_learning_rate_peaks_at_the_end_of_the_warm_up() -> None:
    assert BASE[0](7999) == pytest.approx(9.88e-4, rel=0.001)
    assert BASE[0](50_000) == pytest.approx(3.95e-4, rel=0.001)
    assert "it rises to 9.88e-04 over 8000 steps of warm-up and then falls" in run_questions.rate(*BASE, 300).answer
    assert "it rose to 9.88e-04 over 8000 steps of warm-up and falls" in run_questions.rate(*BASE, 8000).answer


def test_the_learning_rate_is_the_recorded_one_or_else_derived_by_formula() -> None:
    recorded = run_questions.rate(*BASE, 300, [(1, 1e-7), (291, 1.23e-4)])
    assert "1.23e-04 at step 291 (recorded by the trainer)" in recorded.answer
    derived = run_questions.rate(*BASE, 8000)
    assert "at step 8000 (derived from the formula)" in derived.answer
    assert derived.figures["now"] == derived.figures["peak"], "update 8000 is the last one of the warm-up"
    twice = [(1, 0.1), (11, 0.2), (21, 0.3), (11, 0.2), (21, 0.4)]
    assert records.rewound(twice) == ((1, 0.1), (11, 0.2), (21, 0.4)), "what was recorded twice counts once"


def sampled(node: str, *gpus: int) -> dict[str, object]:
    return {"event": "sample", "node": node, "gpus": list(gpus)}


def test_gpu_use_is_told_of_each_machine() -> None:
    found = run_questions.gpus_used([sampled("gpu-0", 97, 99), sampled("gpu-1", 50, 60), sampled("gpu-0", 98)])
    assert found.figures == {"mean_percent": 80.8, "by_machine": {"gpu-0": 98.0, "gpu-1": 55.0}}
    assert found.answer.startswith("No: gpu-1 55 %, gpu-0 98 % on average over 5 samples of 2 machines.")
    assert run_questions.gpus_used([sampled("gpu-0", 97)]).answer.startswith("Yes: gpu-0 97 %")
    assert "nothing sampled them" in run_questions.gpus_used([sampled("gpu-0")]).answer


def test_of_very_many_machines_the_least_used_are_told() -> None:
    answer = run_questions.gpus_used([sampled(f"n{number}", number) for number in range(90)]).answer
    assert "n0 0 %, n1 1 %" in answer and "n15" in answer and "n16" not in answer


def test_use_of_emulated_gpus_says_nothing() -> None:
    found = run_questions.gpus_used([sampled("gpu-0", 75)], emulated=True)
    assert found.answer.startswith("Unknown: these GPUs are emulated")
    assert found.figures["emulated"]


def test_the_configuration_says_why_the_learning_rate_rises_and_falls() -> None:
    why = run_questions.rate(*BASE, 300, why=EXPECTED.schedule).answer
    assert "lr_policy in config.py" in why and "2.0 * 512^-0.5" in why
    assert "warms up because" in why and "decays so that" in why


def test_a_rate_that_a_program_printed_has_its_highest_value() -> None:
    printed = [(1, 0.001), (50, 0.1), (90, 0.01)]
    answer = run_questions.rate(lambda step: None, 0, 0, printed, OWN.schedule).answer
    assert "1.00e-02 at step 90" in answer and "at most 1.00e-01, at step 50" in answer
    assert "the program's own matter" in answer
