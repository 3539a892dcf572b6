"""The parser of the training log, on the lines as OpenSeq2Seq prints them."""

from __future__ import annotations

import pytest

from launchers.progress import Reader, rank_of


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
        ("*** Not enough steps for benchmarking", [{"event": "not_measured"}]),
        ("*** Processed 1/3 batches on worker 0", [{"event": "batches", "done": 1, "of": 3}]),
        ("*** Processed 2/3 batches", [{"event": "batches", "done": 2, "of": 3}]),
        ("*** Finished evaluation", [{"event": "read", "value": "evaluation"}]),
        ("*** Finished inference", [{"event": "read", "value": "inference"}]),
        ("*** Avg time per step: 0.0271s", [{"event": "average_seconds_per_step", "value": 0.0271}]),
        ("*** Loading model from /data/x/model.ckpt-60", [{"event": "loaded", "value": "/data/x/model.ckpt-60"}]),
        ("*** Restoring from the latest checkpoint", []),
        ("*** Using horovod", []),
        ("*** Building graph in Horovod rank: 1", []),
        ("***     Validation loss: nan ", [{"event": "validation", "loss": "nan"}]),
        ("***     Eval BLUE score: 0.0", [{"event": "bleu", "score": 0.0}]),
        ("***     Eval BLUE score: 0.122", [{"event": "bleu", "score": 0.122}]),
        ("time per step = 1:02:3.400", [{"event": "time", "step": None, "seconds_per_step": 3723.4}]),
        ("*** Global step 100: ***     Train loss: inf ", [{"event": "train", "step": 100, "loss": "inf"}]),
        (
            "*** Restored checkpoint from /data/x/best_models/val_loss=1.6200-step-151. Resuming training",
            [{"event": "restored", "step": 151}],
        ),
        ("***     *****EVAL Source[0]:     ▁a ▁b", []),
        ("NCCL INFO Launch mode Parallel", []),
        (
            "mpirun noticed that process rank 2 with PID 0 on node 10.0.0.1 exited on signal 9 (Killed).",
            [{"event": "rank-died", "rank": 2, "node": "10.0.0.1", "signal": 9}],
        ),
        ("  Remote daemon: [[37229,0],1] on node 10.0.0.1", [{"event": "node-lost", "node": "10.0.0.1"}]),
        ("OSError: [Errno 28] No space left on device", [{"event": "disk-full"}]),
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


def test_fragments_of_ranks_that_were_buffered_apart_make_one_line_again():
    line = "*** Global step 0:[1,0]<stdout>: [1,0]<stdout>:***     Train loss: 4.9879 [1,0]<stdout>:"
    assert Reader().read(line) == [{"event": "train", "step": 0, "loss": 4.9879}]


def test_nccl_in_the_middle_of_a_line_does_not_hide_it():
    line = "[1,0]<stdout>:gpu-0:57:112 [0] NCCL INFO Ring 00 : 1[1] -> 2[0]*** Global step 9: ***     Train loss: 3.5 gpu-1:9"
    assert Reader().read(line) == [{"event": "train", "step": 9, "loss": 3.5}]


def test_a_rank_that_ended_by_itself_is_told_on_two_lines():
    reader = Reader()
    assert reader.read("  Process name: [[37229,1],3]") == []
    assert reader.read("  Exit code:    1") == [{"event": "rank-died", "rank": 3, "exit_code": 1}]


@pytest.mark.parametrize(("line", "rank"), [("[1,2]<stderr>:Traceback", 2), ("mpirun noticed", None)])
def test_a_line_bears_its_rank(line, rank):
    assert rank_of(line) == rank
