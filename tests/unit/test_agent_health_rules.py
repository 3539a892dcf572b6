"""Health rules about losses, machines, disks and pace."""

import pytest
import sample_spec

from agent.formats.logs.failure_lines import SENTENCES
from agent.supervise.health_rules import HealthRules, ending


def watched(expected=None, **settings):
    usual = {"stall_s": 900, "mixed": False, "per_hour": None, "max_steps": 0, "print_steps": 0, "checkpoints": "none"}
    return HealthRules(0.0, sample_spec.parsed(**{**usual, **settings}), expected)


def fact(*used, free=1 << 40, **more):
    return {"gpus": [{"utilisation": percent} for percent in used or [90]], "free_bytes": free, **more}


EXPECTED = {"seconds": 1.75, "mbps": 1882, "source": "at 1882 Mb/s, as the preflight measured"}
PREDICTED = "2.500 s per step instead of 1.750 predicted at 1882 Mb/s, as the preflight measured"
LENIENT = {"expected": {**EXPECTED, "seconds": 3.3}}


def paces(rules, *seconds):
    for value in seconds:
        rules.observe({"event": "time", "seconds_per_step": value}, 0.0)


def test_a_run_that_goes_on_is_left_alone():
    rules = watched()
    for step in range(0, 1000, 10):
        rules.observe({"event": "train", "step": step, "loss": 2.0}, float(step))
        rules.observe_sample("gpu-0", fact(), float(step))
    assert rules.active(1000.0) == {}


@pytest.mark.parametrize(("kind", "limit_s"), [("train", 3600.0), ("validation", 600.0)])
def test_a_pattern_that_matches_nothing_is_an_alarm_until_a_checkpoint_comes(kind, limit_s):
    rules, other = watched(checkpoints="rewritten", stall_s=10**5), watched(stall_s=10**5)
    for each in (rules, other):
        each.observe({"event": kind, "step": 10, "loss": 2.0}, 0.0)
        each.show_life(limit_s + 1.0)
    assert "not-saved" not in {**rules.active(limit_s), **other.active(limit_s + 1.0)}
    assert "see job.checkpoints" in rules.active(limit_s + 1.0)["not-saved"]
    assert ending(rules.active(limit_s + 1.0)) is None
    rules.see_checkpoint((10, "ckpt.pt"), 10, limit_s + 2.0)
    assert "not-saved" not in rules.active(limit_s + 2.0)


def losses(rules, *pairs):
    for step, loss in pairs:
        rules.observe({"event": "train", "step": step, "loss": loss}, 1.0)


@pytest.mark.parametrize("loss", ["nan", "inf", "-inf"])
def test_a_loss_that_stays_no_number_for_three_steps_ends_the_run(loss):
    rules = watched()
    losses(rules, (40, loss), (40, loss), (40, loss), (41, loss))
    assert rules.active(1.0) == {}, "several ranks say the loss of one step"
    losses(rules, (42, loss))
    assert rules.active(1.0) == {"nan": f"the train loss stays {loss}, at step 42"}
    assert ending(rules.active(1.0)) == "nan"


def test_a_loss_that_is_a_number_again_ends_nothing():
    rules = watched()
    for step in range(0, 40, 4):
        losses(rules, (step, "nan"), (step + 1, "nan"))
        rules.observe({"event": "validation", "step": step + 1, "loss": "nan"}, 1.0)
        losses(rules, (step + 2, 2.0))
    assert rules.active(1.0) == {}


def test_a_minute_of_nan_losses_ends_a_run_that_counts_epochs():
    rules = watched()
    for t in (0.0, 30.0, 59.0, 60.0):
        assert rules.active(t) == {}
        rules.observe({"event": "train", "step": 1, "loss": "nan"}, t)
    assert ending(rules.active(60.0)) == "nan"


WORDS = {"gpu_words": "Failed to initialize NVML: Driver/library version mismatch", "gpu_code": 18}


@pytest.mark.parametrize("lost", [{"gpus": []}, {"gpus": [{"utilisation": None}] * 2}, {"gpus": [{"utilisation": 90}]}])
def test_readings_that_vanish_are_an_alarm_with_the_words_of_the_tool(lost):
    rules = watched()
    rules.observe_sample("gpu-0", fact(90, 90), 0.0)
    rules.observe_sample("gpu-1", fact(90, 90), 0.0)
    for t in range(20, 700, 20):
        rules.observe({"event": "train", "step": t, "loss": 2.0}, float(t))
        rules.observe_sample("gpu-0", fact(90, 90), float(t))
        rules.observe_sample("gpu-1", {**fact(), **lost, **WORDS}, float(t))
        assert ("gpus-unread" in rules.active(float(t))) is (t > 600)
    said = "gpu-1 (Failed to initialize NVML: Driver/library version mismatch, exit code 18)"
    assert rules.active(680.0) == {"gpus-unread": f"for 10 minutes nothing says how busy the GPUs are of {said}"}
    rules.observe_sample("gpu-1", fact(90, 90), 700.0)
    assert rules.active(700.0) == {}


def test_readings_that_never_were_are_no_alarm():
    rules = watched()
    for t in range(0, 1800, 20):
        rules.observe({"event": "train", "step": t, "loss": 2.0}, float(t))
        rules.observe_sample("gpu-0", fact(None), float(t))
    assert rules.active(1800.0) == {}


def test_a_printed_full_disk_sentence_ends_no_run_with_free_space():
    rules = watched()
    rules.observe_sample("gpu-1", fact(), 0.0)
    rules.observe({"event": "disk-full", "named": "/data"}, 1.0)
    assert rules.active(2.0) == {}
    rules.observe_sample("gpu-1", fact(free=1 << 20), 3.0)
    found = rules.active(4.0)
    assert found["disk-full"] == "no space is left on a disk that a rank writes to: gpu-1 has 1 MB"
    assert ending(found) == "disk-full"
    rules = watched()
    rules.observe({"event": "disk-full", "named": "/data"}, 1.0)
    assert ending(rules.active(60.0, ended=True)) == "disk-full", "it explains a death that follows soon"
    assert ending(rules.active(600.0, ended=True)) is None


@pytest.mark.parametrize("cause", [one for one in SENTENCES if one not in ("disk-full", "launcher-lost")])
def test_a_cause_that_a_rank_names_explains_only_an_end_soon_after(cause):
    rules = watched()
    rules.observe({"event": cause, "named": "/dev/shm/x"}, 1.0)
    rules.observe({"event": "rank-died", "text": "rank 2 on gpu-1 ended with exit code 1"}, 2.0)
    found = rules.active(60.0, ended=True)
    assert (ending(found), found[cause]) == (cause, SENTENCES[cause] + ": /dev/shm/x")
    assert rules.active(60.0) == {}
    assert cause not in rules.active(600.0, ended=True)


def test_a_launchers_report_of_a_dead_rank_counts_at_end_or_stall():
    rules = watched()
    rules.observe({"event": "train", "step": 1, "loss": 1.0}, 0.0)
    rules.observe({"event": "rank-died", "text": "rank 2"}, 1.0)
    assert ending(rules.active(2.0)) is None
    assert ending(rules.active(2.0, ended=True)) == "rank-died"
    assert ending(rules.active(92.0)) == "rank-died"
    rules.observe({"event": "train", "step": 2, "loss": 1.0}, 10.0)
    assert ending(rules.active(200.0, ended=True)) is None, "the other launcher was one of the program's own"


def test_a_silent_machine_is_lost_when_nothing_goes_on_either():
    rules = watched()
    for t in (0.0, 20.0):
        rules.observe_sample("gpu-1", fact(), t)
    rules.observe_sample("gpu-1", None, 40.0)
    assert rules.active(109.0) == {}
    assert rules.active(111.0)["node-lost"].startswith("gpu-1 has not answered")
    rules.observe({"event": "train", "step": 40, "loss": 2.0}, 111.0)
    assert rules.active(112.0) == {}, "it is too busy to answer, and its ranks go on"
    unasked = watched()
    unasked.observe_sample("gpu-1", fact(), 0.0)
    unasked.pause(60.0)
    assert unasked.active(149.0) == {}


def test_the_death_of_a_machine_explains_the_death_of_its_rank():
    rules = watched()
    rules.observe({"event": "rank-died", "text": "rank 2"}, 1.0)
    rules.observe({"event": "node-lost", "text": "gpu-1"}, 1.0)
    assert ending(rules.active(1.0)) == "node-lost"


def test_gpus_at_rest_raise_an_alarm_that_ends_nothing():
    rules = watched()
    for t in range(0, 640, 20):
        rules.observe({"event": "train", "step": t, "loss": 2.0}, float(t))
        rules.observe_sample("gpu-0", fact(), float(t))
        rules.observe_sample("gpu-1", fact(0), float(t))
    found = rules.active(630.0)
    assert list(found) == ["gpus-at-rest"]
    silent = watched()
    for t in (0.0, 700.0):
        silent.observe({"event": "train", "step": 1, "loss": 2.0}, t)
        silent.observe_sample("gpu-0", {"gpus": [], "free_bytes": 1 << 40}, t)
    assert silent.active(700.0) == {}, "where no GPU says how busy it is"
    assert "gpu-1" in found["gpus-at-rest"]
    assert ending(found) is None


def test_a_disk_that_does_not_hold_three_more_checkpoints_is_nearly_full():
    rules = watched()
    rules.see_checkpoint((10, "model"), 1 << 30, 0.0)
    rules.observe_sample("gpu-0", fact(free=2 << 30), 1.0)
    assert "gpu-0 2048 MB left" in rules.active(1.0)["disk-low"]
    rules.observe_sample("gpu-0", fact(free=4 << 30), 2.0)
    assert rules.active(2.0) == {}


@pytest.mark.parametrize(
    ("settings", "seconds", "said"),
    [
        ({}, [1.0] * 5 + [1.29] * 5, None),
        ({}, [1.0] * 5 + [1.29] * 5 + [1.4] * 3, "1.400 s per step instead of 1.000 measured at the beginning"),
        (LENIENT, [1.7] * 5 + [2.5] * 5, "2.500 s per step instead of 1.700 measured at the beginning"),
        ({"expected": EXPECTED}, [2.5] * 2, None),
        ({"expected": EXPECTED}, [2.5] * 3, PREDICTED),
        ({"expected": EXPECTED}, [1.3 * 1.74] * 5, None),
        (
            {"expected": EXPECTED, "per_hour": 13.0, "max_steps": 40_000},
            [2.5] * 5,
            f"{PREDICTED}: $3.90 of every hour's $13.00 buy no steps; what is left takes 500 minutes longer and $108.33 more",
        ),
        (
            {"per_hour": 10.0, "max_steps": None},
            [1.0] * 5 + [2.0] * 5,
            "2.000 s per step instead of 1.000 measured at the beginning: $5.00 of every hour's $10.00 buy no steps",
        ),
    ],
)
def test_steps_slower_by_a_third_are_an_alarm_with_its_price(settings, seconds, said):
    rules = watched(**settings)
    rules.observe({"event": "started"}, 0.0)
    paces(rules, 30.0, *seconds)  # The first line counts the start.
    assert rules.active(0.0).get("slow") == said


def test_the_pace_line_that_includes_an_evaluation_is_left_out():
    rules = watched(expected={**EXPECTED, "seconds": 1.0})
    for _ in range(6):
        rules.observe({"event": "validation", "loss": 2.0}, 0.0)
        paces(rules, 60.0, 1.0)
    assert rules.active(0.0) == {}


def test_a_line_that_is_long_overdue_is_slow_before_it_comes():
    """On a port of 100 Mb/s the hundred steps to the next line take an hour."""
    rules = watched(expected=EXPECTED, per_hour=13.0, max_steps=50_000, print_steps=100)
    rules.observe({"event": "train", "step": 0, "loss": 7.0}, 0.0)
    assert rules.active(350.0) == {}
    assert rules.active(351.0)["slow"].startswith(
        "more than 3.510 s per step since step 0 instead of 1.750 predicted at 1882 Mb/s, as the preflight measured: "
        "$6.52 of every hour's $13.00 buy no steps"
    )
    rules.observe({"event": "train", "step": 100, "loss": 7.0}, 360.0)
    assert rules.active(361.0) == {}
