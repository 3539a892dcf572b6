"""The stand-in trainer's log lines and learning rate."""

import pytest
from standin import lines
from standin.upstream_names import transformer_policy


def test_loss_and_time_are_two_lines_with_upstreams_blanks():
    assert lines.train_loss(0, 5.0417, 2.181) == (
        "*** Global step 0: ***     Train loss: 5.0417 \ntime per step = 0:00:2.181"
    )


def test_long_times_have_hours_and_minutes_and_unpadded_seconds():
    assert lines.train_loss(0, 1.0, 3723.5).endswith("time per step = 1:02:3.500")


def test_a_diverged_loss_is_written_as_nan():
    assert "Train loss: nan \n" in lines.train_loss(10, float("nan"), 1.0)


def test_the_results_of_an_evaluation():
    assert lines.validation(4.9889, 0.122) == "***     Validation loss: 4.9889 \n***     Eval BLUE score: 0.122"


def test_sample_lines_name_their_kind():
    assert lines.samples("Train ", {"Source": "a b"}) == "***     Train Source[0]:     a b"
    assert lines.samples("*****EVAL ", {"Target": "c"}) == "***     *****EVAL Target[0]:     c"


def test_the_closing_lines_of_a_run_and_of_one_that_was_too_short():
    assert lines.finished_training(10, 1.86, 22331.86).splitlines() == [
        "*** Finished training",
        "*** Avg time per step: 0.186s",
        "*** Avg objects per second: 12006.376",
    ]
    assert lines.finished_training(0, 0.0, 0.0) == "*** Finished training\n*** Not enough steps for benchmarking"


def test_the_learning_rate_rises_falls_and_matches_the_published_peak():
    def rate(step):
        return transformer_policy(step, learning_rate=2.0, d_model=512, warmup_steps=8000)

    assert rate(7999) == pytest.approx(9.88e-4, rel=1e-3)
    assert rate(50000) == pytest.approx(3.95e-4, rel=1e-3)
    assert rate(100) < rate(7999) > rate(9000)
