"""The step of each evaluation, which the log itself does not say."""

from microcluster.analysis.evaluations import evaluations
from microcluster.jobs.openseq2seq import METRICS


def train(*steps):
    return [{"event": "train", "step": step, "loss": 4.0, "t": float(step)} for step in steps]


def evaluated(loss, score=None):
    block = [{"event": "evaluation", "t": 0.0}, {"event": "validation", "loss": loss, "t": 0.0}]
    return [*block, *([] if score is None else [{"event": "bleu", "score": score, "t": 0.0}])]


def steps_of(events, eval_steps=None):
    return [(one.step, one.loss) for one in evaluations(events, eval_steps)]


STARTED = {"event": "started"}
FIRST = [STARTED, *evaluated(9.0), *train(1, 101), *evaluated(0.0652), *train(201)]
AT_300 = [*evaluated(0.0488), {"event": "finished"}, {"event": "checkpoint", "step": 300}, {"event": "end"}]
PHASES = [{"event": "phase", "phase": name} for name in ("preparing", "preflight", "training")]


def test_evaluations_come_at_the_start_and_by_the_schedule_and_not_at_the_next_loss_line():
    events = [STARTED, *evaluated(9.0), *train(1, 101), *evaluated(5.0), *train(201, 301), *evaluated(4.0), *train(401)]
    assert steps_of(events, 150) == [(0, 9.0), (150, 5.0), (401, 4.0)], "300 is before the line of 301: not believed"
    assert steps_of(events) == [(1, 9.0), (201, 5.0), (401, 4.0)]


def test_the_last_evaluation_stays_at_its_own_end_when_the_next_attempt_finds_an_older_checkpoint_first():
    again = [*PHASES, {"event": "checkpoint", "step": 200}, {"event": "restored", "step": 300}]
    found = steps_of([*FIRST, *AT_300, *again, *evaluated(0.05), *train(301)], 200)
    assert found == [(0, 9.0), (200, 0.0652), (300, 0.0488), (300, 0.05)]


def test_every_evaluation_has_a_step_also_the_last_one_and_one_that_no_loss_line_follows_yet():
    assert [one.step for one in evaluations([*FIRST, *AT_300])] == [1, 201, 300]
    assert steps_of([STARTED, *evaluated(9.0), *train(1, 101, 151), *evaluated(5.0)], 200)[-1] == (200, 5.0)


def test_a_resumed_attempt_counts_its_schedule_from_where_it_began():
    resumed = [{"event": "restored", "step": 300}, *evaluated(3.0), *train(301, 401), *evaluated(2.0), *train(501)]
    assert steps_of(resumed, 150) == [(300, 3.0), (450, 2.0)]


def test_a_score_belongs_to_its_evaluation_and_may_be_missing():
    events = [*evaluated(9.0, 0.1), *train(1), *evaluated(8.0), *train(2)]
    assert [one.scores for one in evaluations(events, metrics=METRICS)] == [{"bleu": 0.1}, {}]
