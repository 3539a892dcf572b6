"""The parser of the training log, on the lines as OpenSeq2Seq prints them."""

from __future__ import annotations

import pytest

from launchers.progress import Reader


@pytest.mark.parametrize(
    ("line", "events"),
    [
        ("*** Global step 10: ***     Train loss: 4.0454 ", [{"event": "train", "step": 10, "loss": 4.0454}]),
        (
            "[1,0]<stdout>:*** Epoch 1, global step 70: ***     Train loss: 0.7376 ",
            [{"event": "train", "step": 70, "loss": 0.7376}],
        ),
        ("*** Global step 10: ***     Train loss: nan ", [{"event": "train", "step": 10, "loss": "nan"}]),
        (
            "*** Global step 7: ***     Train loss: 2.5, time per step = 0:00:1.723",
            [
                {"event": "train", "step": 7, "loss": 2.5},
                {"event": "time", "step": 7, "seconds_per_step": 1.723},
            ],
        ),
        ("*** Running evaluation on a validation set:", [{"event": "evaluation"}]),
        ("***     Validation loss: 4.9889 ", [{"event": "validation", "loss": 4.9889}]),
        ("***     Eval BLUE score: 0", [{"event": "bleu", "score": 0.0}]),
        ("*** Starting training from scratch", [{"event": "started"}]),
        (
            "*** Restored checkpoint from /data/x/model.ckpt-60. Resuming training",
            [{"event": "restored", "step": 60}],
        ),
        ("*** Finished training", [{"event": "finished"}]),
        ("*** Avg time per step: 0.186s", [{"event": "average_seconds_per_step", "value": 0.186}]),
        ("*** Avg objects per second: 12006.374", [{"event": "average_objects_per_second", "value": 12006.374}]),
        ("*** Total trainable parameters: 66432", [{"event": "parameters", "value": 66432}]),
        ("NCCL INFO Launch mode Parallel", []),
        ("***     Train Source[0]:     <s> ▁the ▁t e ach er ...", []),
        ("", []),
    ],
)
def test_a_line_of_the_log_yields_its_events(line, events):
    assert Reader().read(line) == events


def test_the_time_line_belongs_to_the_step_of_the_loss_line_before_it():
    reader = Reader()
    reader.read("*** Global step 20: ***     Train loss: 3.1 ")
    assert reader.read("time per step = 0:01:0.582") == [{"event": "time", "step": 20, "seconds_per_step": 60.582}]


def test_a_pattern_in_the_middle_of_a_merged_line_is_found():
    line = "'num_gpus': 1,*** Building graph in Horovod rank: 1*** Global step 3: ***     Train loss: 1.5 "
    assert Reader().read(line) == [{"event": "train", "step": 3, "loss": 1.5}]
