"""The parser of the training log, on the lines as OpenSeq2Seq prints them."""

import pytest

from agent.formats.logs.openseq2seq import Reader

EVENTS = {
    "*** Starting training from scratch": [{"event": "started"}],
    "*** Restored checkpoint from /data/en-de-transformer/model.ckpt-60. Resuming training": [
        {"event": "restored", "step": 60}
    ],
    "*** Restored checkpoint from /data/x/best_models/val_loss=1.6200-step-151. Resuming training": [
        {"event": "restored", "step": 151}
    ],
    "*** Total trainable parameters: 66432": [{"event": "parameters", "value": 66432}],
    "*** Running evaluation on a validation set:": [{"event": "evaluation"}],
    "***     Validation loss: 4.9889 ": [{"event": "validation", "loss": 4.9889}],
    "***     Validation loss: nan ": [{"event": "validation", "loss": "nan"}],
    "***     Eval BLUE score: 0.122": [{"event": "bleu", "score": 0.122}],
    "***     Eval BLUE score: 0": [{"event": "bleu", "score": 0.0}],
    "*** Global step 0: ***     Train loss: 5.0417 ": [{"event": "train", "step": 0, "loss": 5.0417}],
    "*** Global step 10: ***     Train loss: nan ": [{"event": "train", "step": 10, "loss": "nan"}],
    "*** Global step 101: ***     Train loss: -inf ": [{"event": "train", "step": 101, "loss": "-inf"}],
    "*** Epoch 1, global step 70: ***     Train loss: 0.7376 ": [{"event": "train", "step": 70, "loss": 0.7376}],
    "time per step = 0:00:2.181": [{"event": "time", "step": None, "seconds_per_step": 2.181}],
    "time per step = 1:02:3.400": [{"event": "time", "step": None, "seconds_per_step": 3723.4}],
    "*** Global step 7: loss = 2.5000, time per step = 0:00:1.723": [
        {"event": "train", "step": 7, "loss": 2.5},
        {"event": "time", "step": 7, "seconds_per_step": 1.723},
    ],
    "*** Finished training": [{"event": "finished"}],
    "*** Avg time per step: 0.186s": [{"event": "average_seconds_per_step", "value": 0.186}],
    "*** Avg objects per second: 12006.374": [{"event": "average_objects_per_second", "value": 12006.374}],
    "*** stand-in trainer, not OpenSeq2Seq (version 3)": [
        {"event": "trainer", "value": "stand-in trainer, not OpenSeq2Seq (version 3)"}
    ],
    "mpirun noticed that process rank 2 with PID 0 on node 10.0.0.1 exited on signal 9 (Killed).": [
        {"event": "rank-died", "rank": 2, "node": "10.0.0.1", "signal": 9}
    ],
    "  Remote daemon: [[37229,0],1] on node 10.0.0.1": [{"event": "node-lost", "node": "10.0.0.1"}],
    "DistributedAdam_Allreduce/HorovodAllreduce_x_0 [missing ranks: 1, 3]": [
        {"event": "waited-for", "rank": 1},
        {"event": "waited-for", "rank": 3},
    ],
}
"""Every line that means something, as run.py, mpirun and Horovod write it, blanks at the end included."""
NOISE = (
    "",
    "*** Using horovod",
    "*** Building graph in Horovod rank: 1",
    "*** Restoring from the latest checkpoint",
    "***     Train Source[0]:     <s> \u2581the \u2581t e ach er ...",
    "***     Train Prediction[0]: \u2581Global \u2581step \u25819 : \u2581Train \u2581loss : \u25813",
    "***     *****EVAL Source[0]:     \u2581No \u2581space \u2581left \u2581on \u2581device",
    "gpu-0:57:112 [0] NCCL INFO Launch mode Parallel",
    "2019-06-01 12:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:141] Your CPU supports AVX2 FMA",
    "WARNING:tensorflow:From /opt/x.py:9: loss: (from tensorflow) is deprecated. Instructions for updating:",
    "W horovod/common/operations.cc:588] One or more tensors were submitted to be reduced, gathered or broadcasted by subset "
    "of ranks and are waiting for remainder of ranks for more than 60 seconds. Stalled ops:",
    "WARNING: A value for btl_tcp_if_include is invalid; it was ignored.  Value: ens3  Message: Unknown interface name",
    "systemd[1]: Started Session 12 of user root.",
    "[ 1234.567890] Out of memory: Kill process 4711 (python) score 901 or sacrifice child",
    " 50%|#####     | 5/10 [00:01<00:01]\r100%|##########| 10/10 [00:02<00:00]\r",
    "MPI_ABORT will kill all processes of MPI_COMM_WORLD",
    "mpirun noticed that the job aborted, but has no info as to the process that caused that situation.",
    "'num_gpus': 1, 'max_steps': 50000, 'loss_params': {'label_smoothing': 0.1},",
    "\x1b[31m\ufffd\ufffd\x00 binary",
    "x" * 70_000,
)
"""What stands between them and means nothing."""


@pytest.mark.parametrize("line", EVENTS)
def test_a_line_of_the_log_yields_its_events(line):
    assert Reader().read(line) == EVENTS[line]


@pytest.mark.parametrize("line", NOISE, ids=lambda line: line[:40])
def test_a_line_of_noise_yields_nothing(line):
    assert Reader().read(line) == []


@pytest.mark.parametrize(
    ("who", "how"),
    [
        ("  Process name: [[37229,1],3]", "  Exit code:    1"),
        ("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", "with errorcode 1."),
    ],
)
def test_a_rank_that_ended_by_itself_is_told_on_two_lines(who, how):
    reader = Reader()
    assert reader.read(who) == []
    assert reader.read("gpu-0:57:112 [0] NCCL INFO comm 0x7f destroyed") == []
    assert reader.read(how) == [{"event": "rank-died", "rank": 3, "exit_code": 1}]
    assert reader.read(how) == []


@pytest.mark.parametrize(
    ("line", "events"),
    [
        ("10: *** Global step 20: ***     Train loss: 1.5 ", [(20, 1.5)]),
        ("10: ***     Validation loss: 4.5 ***     Train loss: 1.5 ", [(10, 1.5)]),
        (f"{'9' * 5000}: ***     Train loss: 4.0 ", []),
        (f"10: ***     Train loss: {'9' * 400} ", [(10, "inf")]),
    ],
    ids=["of the next step", "of a validation", "a number to which nobody counts", "a loss beyond all numbers"],
)
def test_a_step_takes_no_other_loss_than_its_own(line, events):
    told = [each for each in Reader().read(f"*** Global step {line}") if each["event"] == "train"]
    assert [(each["step"], each["loss"]) for each in told] == events


def test_the_ranks_that_horovod_waits_for_are_told_once_until_a_step_is_made():
    reader = Reader()
    listed = ["Missing ranks:", "1: [HorovodAllreduce_a, HorovodAllreduce_b ...]", "3!: [HorovodAllreduce_a]"]
    tagged = [f"[1,0]<stderr>:{line}" for line in listed]
    noisy = [*tagged[:2], "[1,2]<stderr>:3: [NCCL] a list of somebody else", *tagged[2:]]
    told = [{"event": "waited-for", "rank": 1}, {"event": "waited-for", "rank": 3}]
    assert [event for line in (*noisy, *noisy) for event in reader.read(line)] == told
    reader.read("*** Global step 10: ***     Train loss: 1.5 ")
    assert [event for line in noisy for event in reader.read(line)] == told


def test_a_list_with_numbers_that_is_not_horovods_names_no_rank():
    reader = Reader()
    lines = ["Missing ranks:", "1: [x]", "[1,0]<stdout>:that was all", "something else", "2: [y]"]
    assert [event for line in lines for event in reader.read(line)] == [{"event": "waited-for", "rank": 1}]
