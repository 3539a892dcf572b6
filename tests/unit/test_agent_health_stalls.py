"""Health rules about life: stalled and hung runs."""

import pytest
from test_agent_health_rules import EXPECTED, fact, watched

from agent.supervise.health_rules import ending


def test_no_progress_ends_the_run_and_says_since_which_step():
    rules = watched()
    rules.observe({"event": "train", "step": 40, "loss": 2.0}, 100.0)
    assert rules.active(1000.0) == {}
    assert "since step 40" in rules.active(1001.0)["stalled"]
    assert ending(rules.active(1001.0)) == "stalled"
    assert watched().active(1799.0) == {}, "a start takes its time"
    assert "since the start" in watched().active(1801.0)["stalled"]


@pytest.mark.parametrize(
    ("events", "limit_s"),
    [
        ([("train", 0.0), ("train", 600.0), ("train", 1200.0)], 3000.0),
        ([("restored", 600.0), ("train", 1200.0)], 900.0),
    ],
    ids=["slow lines get more time", "a slow start gives no more"],
)
def test_a_stall_is_five_times_the_longest_gap_between_steps(events, limit_s):
    rules = watched()
    for kind, t in events:
        rules.observe({"event": kind, "step": 1, "loss": 2.0}, t)
    assert rules.active(1200.0 + limit_s - 1) == {}
    assert "stalled" in rules.active(1200.0 + limit_s + 1)


def test_any_output_and_any_new_checkpoint_is_life():
    rules = watched()
    rules.observe({"event": "train", "step": 40, "loss": 2.0}, 0.0)
    rules.show_life(800.0)
    rules.see_checkpoint((40, "model"), 1000, 1600.0)
    assert rules.active(2499.0) == {}
    assert rules.active(2501.0)["stalled"] == "no sign of life for 15 minutes, since step 40"


@pytest.mark.parametrize(("used", "lives"), [(90, True), (5, False)])
def test_busy_gpus_are_life_unless_one_rests(used, lives):
    rules = watched()
    rules.observe({"event": "train", "step": 40, "loss": 2.0}, 0.0)
    for t in range(0, 1020, 20):
        rules.observe_sample("gpu-0", fact(90), float(t))
        rules.observe_sample("gpu-1", fact(used), float(t))
    assert ("stalled" not in rules.active(1000.0)) is lives


def test_a_silent_log_while_all_gpus_work_is_named_as_hung():
    rules = watched()
    for t in range(0, 1000, 100):
        rules.observe({"event": "train", "step": t, "loss": 2.0}, float(t))
    for t in range(900, 1320, 20):
        rules.observe_sample("gpu-0", fact(100), float(t))
        assert ("hung" in rules.active(float(t))) is (t > 1200)
    rules.see_checkpoint((900, "model"), 1000, 1310.0)
    assert "hung" not in rules.active(1310.0)


def test_a_program_that_prints_while_its_gpus_work_does_not_hang():
    rules = watched()
    for t in (0, 10):
        rules.observe({"event": "train", "step": t, "loss": 2.0}, float(t))
    for t in range(20, 7200, 20):  # It counts batches, and its step is the epoch.
        rules.observe_sample("gpu-0", fact(99), float(t))
        rules.show_life(float(t))
        assert rules.active(float(t)) == {}


def test_a_program_that_has_printed_one_step_may_compute_for_an_hour():
    rules = watched()
    rules.observe({"event": "train", "step": 1, "loss": 2.0}, 0.0)
    for t in range(0, 3600, 20):
        rules.observe_sample("gpu-0", fact(99), float(t))
        assert rules.active(float(t)) == {}


def test_a_gap_that_was_there_before_is_no_hanging():
    rules, t = watched(), 0.0
    for epoch in range(3):
        for step in range(30):
            t += 1.0
            rules.observe({"event": "train", "step": 30 * epoch + step, "loss": 2.0}, t)
        t += 600.0  # It evaluates, and does not say so.
        rules.observe_sample("gpu-0", fact(), t)
        assert ("hung" in rules.active(t)) is (epoch == 0)
    rules.observe_sample("gpu-0", fact(), t + 310.0)
    assert "hung" in rules.active(t + 310.0)


def test_the_lines_of_a_rank_are_life_of_its_machine():
    """Its steps may be epochs, and its machine too busy to answer over ssh."""
    rules = watched()
    rules.observe({"event": "train", "step": 1, "loss": 2.0}, 0.0)
    for t in range(300):
        rules.observe_sample("gpu-0", fact(), float(t))
        rules.observe_sample("gpu-1", None, float(t))
        rules.show_life(float(t), "gpu-1")
    assert rules.active(300.0) == {}
    assert rules.active(400.0)["node-lost"].startswith("gpu-0 and gpu-1 has not answered")


def test_a_line_without_a_name_may_be_life_of_any_machine():
    rules = watched()
    for t in range(100):
        rules.observe_sample("gpu-1", None, float(t))
        rules.show_life(float(t))
    assert rules.active(100.0) == {}
    assert rules.active(200.0)["node-lost"].startswith("gpu-1 has not answered")


def test_lines_of_another_machine_are_no_life_of_one_that_is_lost():
    rules = watched()
    for t in range(100):
        rules.observe_sample("gpu-1", None, float(t))
        rules.show_life(float(t), "gpu-0")
    assert rules.active(100.0)["node-lost"].startswith("gpu-1 has not answered")


@pytest.mark.parametrize("used", [(90, None), (None, 90)])
def test_a_card_without_a_reading_neither_works_nor_rests(used):
    rules = watched()
    rules.observe({"event": "train", "step": 40, "loss": 2.0}, 0.0)
    for t in range(0, 1800, 20):
        rules.observe_sample("gpu-0", fact(90, 90) if t == 0 else fact(*used), float(t))
        assert set(rules.active(float(t))) <= {"gpus-unread"}
    rules.observe({"event": "train", "step": 41, "loss": 2.0}, 1800.0)
    for t in range(1800, 3600, 20):
        rules.observe_sample("gpu-0", fact(0, None), float(t))
    assert "gpus-at-rest" not in rules.active(1810.0)


def test_a_declared_evaluation_takes_its_time_and_is_neither_hung_nor_slow():
    rules = watched(expected=EXPECTED, print_steps=100)
    rules.observe({"event": "train", "step": 4000, "loss": 7.0}, 0.0)
    rules.observe({"event": "evaluation"}, 10.0)
    rules.show_life(700.0)
    assert rules.active(800.0) == {}


def test_busy_gpus_do_not_hide_skipped_mixed_precision_updates():
    rules = watched(mixed=True)
    rules.observe({"event": "train", "step": 40, "loss": 2.0}, 0.0)
    for t in range(0, 1000, 20):
        rules.observe_sample("gpu-0", fact(), float(t))
    assert "every update can be skipped" in rules.active(1000.0)["stalled"]


def test_a_stall_names_the_awaited_ranks_until_the_next_step():
    rules = watched(mixed=True)
    for rank in range(6):
        rules.observe({"event": "waited-for", "text": f"rank {rank} on gpu-{rank}"}, 1.0)
    assert rules.active(1.0) == {}, "waiting alone is no alarm"
    named = " and ".join(f"rank {rank} on gpu-{rank}" for rank in range(4))
    assert rules.active(1801.0)["stalled"].endswith(f"; the other ranks wait for {named} and 2 more")
    rules.observe({"event": "train", "step": 1, "loss": 2.0}, 1900.0)
    assert "wait" not in rules.active(4000.0)["stalled"]


def test_a_run_with_rare_predicted_lines_has_not_stalled_between_them():
    rules = watched(expected={**EXPECTED, "seconds": 10.0}, print_steps=100)
    rules.observe({"event": "train", "step": 0, "loss": 7.0}, 0.0)
    assert "stalled" not in rules.active(1500.0)
    assert "stalled" in rules.active(5001.0)
