"""The log of MXNet's workers, line by line, in the words of 1.1 and of 1.9."""

import pytest

from agent.formats.logs.mxnet import Reader


def read(*lines: str) -> list[dict[str, object]]:
    reader = Reader()
    return [event for line in lines for event in reader.read(line)]


def values(events: list[dict[str, object]], name: str) -> list[tuple[object, object]]:
    return [(event["step"], event["value"]) for event in events if event.get("name") == name]


OF_1_1 = "INFO:root:Epoch[0] Batch [{}]\tSpeed: {} samples/sec\taccuracy=0.000781"
OF_1_9 = "2026-11-22 21:00:00,000 Node[1] Epoch[0] Batch [20-{}]\tSpeed: {} samples/sec\taccuracy=0.5\tloss=1.2"
BLANKS = "INFO:root:Epoch[0] Batch [{}]   Speed: {} samples/sec        accuracy=0.000744"


@pytest.mark.parametrize("line", [OF_1_1, OF_1_9, BLANKS], ids=["1.1", "1.9", "blanks"])
def test_the_speeds_of_all_workers_at_one_batch_are_added_up(line: str) -> None:
    events = read(
        "[worker 0] " + line.format(20, "12.13"),
        "[worker 1] " + line.format(20, "12.07"),
        "[worker 1] " + line.format(40, "11.46"),
        "[worker 0] " + line.format(40, "11.47"),
        "[worker 0] INFO:root:Epoch[0] Time cost=3.5",
    )
    assert values(events, "samples_per_second") == [(0, 24.2), (0, 22.93)]
    assert events[0] == {"event": "train", "step": 0}, "the first line shows that it trains, in epoch 0"


def test_the_speeds_of_two_workers_without_names_are_added_up_too() -> None:
    events = read(
        *(OF_1_1.format(20, speed) for speed in ("12.13", "12.07")),
        *(OF_1_1.format(40, speed) for speed in ("11.46", "11.47")),
        "INFO:root:Epoch[0] Time cost=3.5",
    )
    assert values(events, "samples_per_second") == [(0, 24.2), (0, 22.93)]


def test_an_epoch_that_is_over_is_a_step_with_the_first_workers_figures() -> None:
    events = read(
        "[worker 1] Node[0] Epoch[2] Train-accuracy=0.100000",
        "[worker 0] Node[1] Epoch[2] Train-accuracy=0.750000",
        "[worker 0] Node[1] Epoch[2] Train-cross-entropy=0.625000",
        "[worker 1] Node[0] Epoch[2] Time cost=9.000",
        "[worker 0] Node[1] Epoch[2] Time cost=4.500",
        '[worker 0] Node[1] Saved checkpoint to "model-0003.params"',
        "[worker 0] Node[1] Epoch[2] Validation-accuracy=0.875000",
        "[worker 0] Node[1] Epoch[2] Validation-cross-entropy=0.500000",
        "[worker 1] Node[0] Epoch[2] Validation-accuracy=0.200000",
    )
    assert {"event": "train", "step": 3, "loss": 0.625} in events
    assert {"event": "time", "step": 3, "seconds_per_step": 4.5} in events
    assert {"event": "validation", "step": 3, "loss": 0.5} in events
    assert values(events, "accuracy") == [(3, 0.75)]
    assert values(events, "validation_accuracy") == [(3, 0.875)]


def test_steps_are_told_without_a_loss_or_with_one_that_is_no_number_and_a_loaded_model_once() -> None:
    over = "[worker 0] Epoch[0] Time cost=1.0"
    assert {"event": "train", "step": 1} in read("[worker 0] INFO:root:Epoch[0] Train-accuracy=0.5", over)
    nan = {"event": "train", "step": 1, "loss": "nan"}
    assert nan in read("[worker 0] Epoch[0] Train-cross-entropy=nan", over)
    lines = [f"[worker {n}] Node[{n}] Loaded model /data/runs/a/logdir/model_0003.params" for n in (0, 1)]
    assert read(*lines) == [{"event": "restored", "step": 3}]


def test_the_figures_so_far_are_the_first_workers() -> None:
    events = read("[worker 1] " + OF_1_1.format(20, "12.13"), "[worker 0] " + BLANKS.format(20, "12.07"))
    assert values(events, "accuracy") == [(1, 0.000744)]
    assert [event for event in events if event["event"] == "batch"] == [{"event": "batch", "step": 0, "value": 20}]
