"""What a program of the user's own prints, as events."""

import json
from pathlib import Path

import pytest
import sample_spec
import yaml

from agent.formats.logs import json_lines, pattern
from agent.supervise.monitor import reader_of
from tests.recorded import Recorded, recorded

TAG = "[1,0]<stdout>:"


def reader(name="json_lines", *times, **options):
    clock = {"clock": iter(times).__next__} if times else {"clock": lambda: 0.0}
    return {"json_lines": json_lines, "pattern": pattern}[name].Reader(**options, **clock)


def test_a_json_line_is_a_step_with_its_other_numbers_as_metrics():
    line = TAG + 'progress {"step": 10, "loss": 2.5, "accuracy": 0.5, "phase": "warm-up", "done": true}'
    assert reader().read(line) == [
        {"event": "train", "step": 10, "loss": 2.5},
        {"event": "metric", "name": "accuracy", "step": 10, "value": 0.5},
    ]
    assert reader().read('{"step": 10, "validation_loss": 2.5}') == [{"event": "validation", "step": 10, "loss": 2.5}]
    (event,) = reader().read('{"step": 3, "loss": NaN}')
    assert event == {"event": "train", "step": 3, "loss": "nan"}, "a word that JSON can hold"


@pytest.mark.parametrize("name", ["a\\u0000b", "\\u001b[2J", "\\ud800", "a\\nb", "a" * 81])
def test_a_number_under_a_name_that_cannot_be_shown_is_no_metric(name):
    assert reader().read(f'{{"step": 10, "loss": 2.5, "{name}": 1}}') == [{"event": "train", "step": 10, "loss": 2.5}]


def test_a_pattern_with_named_groups_does_the_same():
    own = r"epoch \d+ step (?P<step>\d+) loss (?P<loss>\S+)(?: acc (?P<accuracy>\S+))?"
    found = reader("pattern", 0.0, 2.0, 4.0, pattern=own)
    assert found.read(TAG + "epoch 1 step 7 loss 0.25") == [{"event": "train", "step": 7, "loss": 0.25}]
    assert found.read("epoch 1 step 8 loss nan acc 0.5") == [
        {"event": "train", "step": 8, "loss": "nan"},
        {"event": "time", "step": 8, "seconds_per_step": 2.0},
        {"event": "metric", "name": "accuracy", "step": 8, "value": 0.5},
    ]
    assert found.read("epoch 1 step 9 loss much")[0] == {"event": "train", "step": 9}


def test_a_step_line_without_loss_counts_step_and_pace() -> None:
    found = reader("pattern", 0.0, 2.0, pattern=r"Iter #(?P<step>\d+): (?P<images>[\d.]+) img/sec")
    assert found.read(TAG + "Iter #1: 10.5 img/sec")[0] == {"event": "train", "step": 1}
    (again,) = found.read("[1,1]<stdout>:Iter #1: 10.1 img/sec")
    assert again["event"] == "metric", "another rank's line of the same step"
    assert [event["event"] for event in found.read(TAG + "Iter #2: 10.7 img/sec")] == ["train", "time", "metric"]


def test_lines_in_bursts_have_the_pace_of_their_steps() -> None:
    times = [3000.0 * burst + 0.0005 * line for burst in (1, 2, 3) for line in range(300)]
    found = reader("pattern", *times, pattern=r"step (?P<step>\d+)")
    events = [event for step in range(900) for event in found.read(f"step {step}")]
    assert [event["seconds_per_step"] for event in events if event["event"] == "time"] == [10.0, 10.0]


@pytest.mark.parametrize("loss", ["", " loss 0.5"])
def test_batches_of_an_unnamed_epoch_never_set_the_step_back(loss) -> None:
    found = reader("pattern", pattern=r"batch (?P<step>\d+)/50(?: loss (?P<loss>\S+))?")
    lines = [f"batch {batch}/50{loss}" for _ in range(4) for batch in range(1, 51)]
    steps = [event["step"] for line in lines for event in found.read(line) if event["event"] == "train"]
    assert steps == list(range(1, 51)) + ([50] * 150 if loss else [])


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("epoch {epoch} batch {batch}", id="both on one line"),
        pytest.param("epoch {epoch}\nbatch {batch}", id="a heading"),
        pytest.param("batch {batch} of epoch {epoch}", id="the epoch behind"),
    ],
)
@pytest.mark.parametrize("batches", [range(8), range(1, 9), [4, 8], [8]])
def test_batches_count_on_where_the_epoch_is_named(line, batches) -> None:
    found = reader("pattern", pattern=r"epoch (?P<epoch>\d+)|batch (?P<step>\d+)")
    texts = [line.format(epoch=epoch, batch=batch) for epoch in (1, 2, 3) for batch in batches]
    events = [event for text in texts for one in text.split("\n") for event in found.read(one)]
    steps = [event["step"] for event in events if event["event"] == "train"]
    assert steps == [8 * epoch + batch for epoch in range(3) for batch in batches]


def test_steps_counted_over_all_epochs_stay_unchanged_at_epoch_borders() -> None:
    found = reader()
    for epoch, step in ((0, 90), (0, 100), (1, 100), (1, 110), (2, 200)):
        (event, *_) = found.read(json.dumps({"epoch": epoch, "step": step, "loss": 1.0}))
        assert event["step"] == step


def test_a_comma_separated_column_is_no_number_with_thousands() -> None:
    found = reader("pattern", pattern=r"^(?P<step>\d+),(?P<loss>[\d.]+)")
    assert found.read("10,200")[0] == {"event": "train", "step": 10, "loss": 200.0}
    assert found.read("11,200.5")[0] == {"event": "train", "step": 11, "loss": 200.5}


def test_a_line_without_a_step_belongs_to_the_last_step_seen() -> None:
    bar_or_loss = r"\| (?P<step>\d+)/\d+ \[|'loss': '?(?P<loss>[\d.]+)"
    found = reader("pattern", 0.0, 0.0, 0.3, 9.0, 9.0, 12.0, pattern=bar_or_loss)
    assert found.read("{'loss': 4.2}") == []
    assert found.read(" 10%|#  | 10/90 [00:01<00:09]\r") == [{"event": "train", "step": 10}]
    assert found.read(" 11%|#  | 11/90 [00:01<00:09]\r") == [], "too soon to be drawn"
    assert found.read("{'loss': '3.9', 'epoch': 0.1}")[0] == {"event": "train", "step": 11, "loss": 3.9}
    behind = found.read(" 20%|## | 18/90 [00:03<00:09]{'loss': '3.7', 'epoch': 0.2}")
    assert behind[0] == {"event": "train", "step": 18, "loss": 3.7}


def test_a_loss_after_its_steps_heading_leaves_the_pace_unchanged() -> None:
    found = reader("pattern", 0.0, 5.0, 6.0, pattern=r"Epoch (?P<step>\d+)/|loss: (?P<loss>[\d.]+)")
    assert found.read("Epoch 1/10") == [{"event": "train", "step": 1}]
    assert found.read("250/250 [==] - 5s - loss: 0.5") == [{"event": "train", "step": 1, "loss": 0.5}]
    assert found.read("Epoch 2/10")[1] == {"event": "time", "step": 2, "seconds_per_step": 6.0}


def test_horovods_repeated_stall_lines_are_no_life_other_lines_are() -> None:
    waits = (
        "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting"
    )
    missing = (
        "Missing ranks:",
        "3: [HorovodAllreduce_x ...]",
        "Stalled ops:HorovodAllreduce_x [missing ranks: 3]",
        "  ",
    )
    assert not any(reader().shows_life(line) for line in (waits, *(f"[1,0]<stderr>:{line}" for line in missing)))
    assert reader().shows_life("[1,0]<stdout>:Epoch 3:  12%|#2        | 120/1000")


def test_colors_and_backspaces_of_a_terminal_do_not_hide_a_number():
    found = reader("pattern", pattern=r"step (?P<step>\d+)/\d+ .*loss: (?P<loss>\S+)")
    line = "\b" * 30 + "\x1b[1mstep 7\x1b[0m/9 \x1b[32m" + "\u2501" * 20 + "\x1b[0m - loss: 0.\b\b\x1b[31m25\x1b[K"
    assert found.read(line) == [{"event": "train", "step": 7, "loss": 0.25}]


@pytest.mark.parametrize("filler", ["x", "loss ", "step "])
def test_a_number_far_behind_in_a_long_line_is_found(filler):
    found = reader("pattern", pattern=r"step (?P<step>\d+) loss (?P<loss>[\d.]+)")
    for length in (9_990, 18_985, 500_000):
        assert found.read(filler * (length // len(filler)) + " step 7 loss 0.123456")[0]["loss"] == 0.123456
    (event,) = reader().read("{" + '"x" ' * 30_000 + '}{"note": "no step"} {"step": 7, "loss": 1}')
    assert event == {"event": "train", "step": 7, "loss": 1.0}


def test_a_pattern_that_takes_too_long_is_given_up_and_reported(monkeypatch):
    monkeypatch.setattr(pattern, "LONGEST_S", 0.1)
    found = reader("pattern", pattern=r"(?P<step>\d+)|(a|a)+$")
    events = [event for _ in range(5) for event in found.read("a" * 60 + "b")]
    assert [(event["event"], event["cause"]) for event in events] == [("alarm", "progress-unread")]
    assert found.read("7") == []


def test_the_published_trainers_bar_is_read_also_with_a_nan_loss():
    stack = yaml.safe_load((Path(__file__).parents[2] / "stacks" / "Pulumi.paperspace.yaml").read_text())
    found = reader("pattern", pattern=stack["config"]["microcluster:job"]["progress"])
    bar = "Processing Epoch 03 on rank {}:  10%|#         | 380/3638 [01:02<08:51,  6.13it/s, loss={}]"
    assert found.read(bar.format(2, " 5.707")) == []
    assert found.read(bar.format(0, " 5.707")) == [{"event": "train", "step": 3, "loss": 5.707}]
    assert found.read(bar.format(0, "nan")) == [{"event": "train", "step": 3, "loss": "nan"}]


def test_a_redrawn_line_is_read_each_second_and_at_its_end():
    times = iter([0.0, 0.0, 0.1, 0.5, 1.2, 1.2, 1.3])
    found = json_lines.Reader(clock=lambda: next(times))
    read = [found.read(json.dumps({"step": step, "loss": 1.0}) + "\r") for step in (10, 11, 12, 13, 14)]
    steps = [[event["step"] for event in events if event["event"] == "train"] for events in read]
    assert steps == [[10], [], [], [13], []]
    times = iter([2.0])
    assert found.read("")[0] == {"event": "train", "step": 14, "loss": 1.0}


@pytest.mark.parametrize("name", ["json_lines", "pattern", "mxnet", "openseq2seq", "texar"])
def test_every_reader_knows_a_dead_rank_and_a_full_disk(name):
    options = {"pattern": r"step (?P<step>\d+)"} if name == "pattern" else {}
    found = reader_of(sample_spec.parsed(reader=name, reader_options=options))
    died = "mpirun noticed that process rank 2 with PID 0 on node 10.0.0.1 exited on signal 9 (Killed)."
    assert found.read(died) == [{"event": "rank-died", "rank": 2, "node": "10.0.0.1", "signal": 9}]
    assert found.read("[server 1] OSError: No space left on device: '/a'")[-1] == {"event": "disk-full", "named": "/a"}


@recorded("rank_lines")
def test_lines_of_launchers_and_horovod_name_ranks_and_only_some_are_life(answer: Recorded) -> None:
    lines, found = answer.answer.splitlines(), reader()
    assert [event for line in lines for event in found.read(line)] == answer.expected["events"]
    assert any(map(found.shows_life, lines)) is answer.expected["life"]


@pytest.mark.parametrize(
    ("line", "url"),
    [
        ("wandb: \U0001f680 View run at https://wandb.ai/me/p/runs/abc", "https://wandb.ai/me/p/runs/abc"),
        (
            "wandb: \U0001f680 View run happy-disco-4 at: \x1b[34m\x1b[4mhttps://wandb.ai/me/p/runs/a\x1b[0m",
            "https://wandb.ai/me/p/runs/a",
        ),
        (TAG + "wandb: View run a b c at: https://w.example.org:8443/x", "https://w.example.org:8443/x"),
        ("wandb: View run at http://localhost:8080/me/p/runs/abc", None),
        ("wandb: View project at https://wandb.ai/me/p", None),
    ],
)
def test_the_page_at_weights_and_biases_is_read_from_the_log(line, url):
    found = [event["text"] for event in reader().read(line) if event["event"] == "wandb"]
    assert found == ([url] if url else [])
