"""The log of Texar's distributed language model, as mpirun passes it on."""

import math

from agent.formats.logs.texar import Reader

ABSL = "I1122 21:55:30.629405 139861476196416 lm_ptb_distributed.py:212] "
PROGRESS = "0.100 perplexity: 672.331 speed: 2307 wps"


def line(text: str, rank: int = 0) -> str:
    return f"[1,{rank}]<stderr>:{text}"


def events(*lines: str) -> list[dict[str, object]]:
    reader = Reader()
    return [event for one in lines for event in reader.read(one)]


def both(text: str, rank: int = 0) -> tuple[str, str]:
    """Return a line as both loggers print it."""
    return line(f"INFO:tensorflow:{text}", rank), line(ABSL + text, rank)


def test_an_epoch_has_its_loss_its_perplexity_and_the_time_of_its_training_alone() -> None:
    found = events(
        *both("epoch time elapsed: 137.250000"),
        *both("Epoch: 0 Train Perplexity: 270.527"),
        *both("epoch time elapsed: 2.500000"),
        *both("Epoch: 0 Valid Perplexity: 180.105"),
    )
    assert found == [
        {"event": "train", "step": 1, "loss": round(math.log(270.527), 6)},
        {"event": "metric", "name": "perplexity", "step": 1, "value": 270.527},
        {"event": "time", "step": 1, "seconds_per_step": 137.25, "training_only": True},
        {"event": "validation", "step": 1, "loss": round(math.log(180.105), 6)},
        {"event": "metric", "name": "validation_perplexity", "step": 1, "value": 180.105},
    ]


def test_progress_within_an_epoch_belongs_to_the_epoch_that_is_under_way() -> None:
    found = events(*both("Epoch: 1 Train Perplexity: 150.000"), *both(PROGRESS))
    told = [(event["name"], event["step"], event["value"]) for event in found[-2:]]
    assert told == [("perplexity", 3, 672.331), ("words_per_second", 3, 2307.0)]


def test_a_doubled_line_makes_one_event_and_the_same_words_later_make_another() -> None:
    assert len(events(*both(PROGRESS))) == 2
    assert len(events(*both(PROGRESS), *both("epoch time elapsed: 1.0"), *both(PROGRESS))) == 4


def test_lines_of_two_ranks_that_fall_between_each_other_count_once_and_for_the_first_rank_only() -> None:
    mine, others = both("Epoch: 0 Train Perplexity: 104.633"), both("Epoch: 0 Train Perplexity: 103.377", rank=1)
    found = events(mine[0], others[0], mine[1], others[1])
    assert [event.get("value") for event in found if event["event"] == "metric"] == [104.633]


def test_a_good_run_ends_with_the_test_perplexity_and_a_perplexity_that_is_no_number_is_no_loss() -> None:
    found = events(*both("Epoch: 12 Train Perplexity: 40.810"), *both("Test Perplexity: 114.720"))
    assert found[-1] == {"event": "metric", "name": "test_perplexity", "step": 13, "value": 114.72}
    nan = events(line("INFO:tensorflow:Epoch: 3 Train Perplexity: nan"))[0]
    assert nan == {"event": "train", "step": 4, "loss": "nan"}


def test_our_own_program_and_texar_say_what_they_are_and_where_they_go_on() -> None:
    found = events(
        line("stand-in language model, not Texar (version 0.1.0)"),
        line("Restored checkpoint from /data/runs/a/logdir/model.ckpt-5"),
        line(f"INFO:tensorflow:{PROGRESS}"),
    )
    assert found[0] == {"event": "trainer", "value": "stand-in language model, not Texar (version 0.1.0)"}
    assert (found[1], found[2]["step"]) == ({"event": "restored", "step": 5}, 6)
    real = "Texar 0.2.4 on TensorFlow 2.12 through our compatibility module"
    assert events(line(f"*** {real}")) == [{"event": "trainer", "value": real}]
