"""The stand-in trainer's log lines and learning rate."""

import pytest
from standin import lines
from standin.configuration import transformer_policy

STEP = "*** Global step {}: ***     Train loss: {} \ntime per step = {}"
END = "*** Finished training\n"
BENCHMARK = END + "*** Avg time per step: 0.186s\n*** Avg objects per second: 12006.376"


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        (lines.train_loss(0, 5.0417, 2.181), STEP.format(0, "5.0417", "0:00:2.181")),
        (lines.train_loss(0, 1.0, 3723.5), STEP.format(0, "1.0000", "1:02:3.500")),
        (lines.train_loss(10, float("nan"), 1.0), STEP.format(10, "nan", "0:00:1.000")),
        (
            lines.validation(4.9889, 0.122),
            "***     Validation loss: 4.9889 \n***     Eval BLUE score: 0.122",
        ),
        (lines.samples("Train ", {"Source": "a b"}), "***     Train Source[0]:     a b"),
        (lines.samples("*****EVAL ", {"Target": "c"}), "***     *****EVAL Target[0]:     c"),
        (lines.finished_training(10, 1.86, 22331.86), BENCHMARK),
        (lines.finished_training(0, 0.0, 0.0), END + "*** Not enough steps for benchmarking"),
    ],
)
def test_every_line_is_written_as_upstream_writes_it(printed, wanted):
    assert printed == wanted


def test_the_learning_rate_rises_falls_and_matches_the_published_peak():
    def rate(step):
        return transformer_policy(step, learning_rate=2.0, d_model=512, warmup_steps=8000)

    assert rate(7999) == pytest.approx(9.88e-4, rel=1e-3)
    assert rate(50000) == pytest.approx(3.95e-4, rel=1e-3)
    assert rate(100) < rate(7999) > rate(9000)
