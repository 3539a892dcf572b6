"""For how long nothing has happened on the machines of a run, in virtual time."""

import pytest
import sample_spec

from agent.supervise.idle import Idleness

EVERY_S = 20.0
NAMES = ("gpu-0", "gpu-1")
TICKS_PER_S, PROCESSORS = 100, 16
A_MINUTE = 3
"""Rounds of samples."""


class Cluster:
    """Two machines that rest but for what a test says, and the count over them."""

    def __init__(self):
        self.now, self.count = 0.0, Idleness(sample_spec.parsed(sample_every_s=EVERY_S, gpu="V100"))
        self.work, self.bytes, self.ssh, self.typed = (dict.fromkeys(NAMES, 0.0) for _ in range(4))
        self.count.hear("step 10", [{"event": "train", "step": 10, "loss": 2.0}])
        self.pass_by(1)

    def facts(self, name, gpus=(0, 0), *, is_read=True):
        readings = {
            "processors": [self.work[name], self.now * TICKS_PER_S * PROCESSORS, PROCESSORS],
            "network": {"cards": self.bytes[name] + 1.1 * self.ssh[name], "ssh": {"watch": self.ssh[name]}},
            "typed": self.typed[name],
        }
        return {"gpus": [{"utilisation": used} for used in gpus], "activity": readings if is_read else None}

    def pass_by(self, rounds=1, *, busy=0.0, moved=0.0, watched=0.0, hangs=False, **changes):
        """Let rounds of samples pass in which gpu-1 has so many busy processors and bytes a minute; ``changes`` are of its sample."""
        for _ in range(rounds):
            self.now += EVERY_S
            self.work["gpu-1"] += busy * TICKS_PER_S * EVERY_S
            self.bytes["gpu-1"] += moved * EVERY_S / 60
            self.ssh["gpu-1"] += watched * EVERY_S / 60
            answers = [("gpu-0", self.facts("gpu-0")), ("gpu-1", self.facts("gpu-1", **changes))]
            self.count.observe(answers, self.now, hangs)
        return self.count.idle_s()


@pytest.fixture
def cluster():
    return Cluster()


@pytest.mark.parametrize(
    "work",
    [
        pytest.param({"busy": 1.0}, id="one thread that tokenises or compiles"),
        pytest.param({"gpus": (0, 90)}, id="evaluation on one GPU"),
        pytest.param({"moved": 2e6}, id="saving to a drive, or data that come"),
    ],
)
def test_a_machine_that_prepares_data_compiles_evaluates_or_saves_is_not_idle(cluster, work):
    assert cluster.pass_by(60 * A_MINUTE, **work) == 0.0
    assert cluster.pass_by(A_MINUTE) == 60.0


@pytest.mark.parametrize("little", [{}, {"busy": 0.4}, {"gpus": (0, 4)}, {"moved": 9e5}])
def test_what_every_machine_does_at_rest_is_no_work(cluster, little):
    assert cluster.pass_by(60 * A_MINUTE, **little) == 3600.0


def test_somebody_who_only_watches_a_run_does_not_keep_its_machines(cluster):
    assert cluster.pass_by(60 * A_MINUTE, watched=5e7) == 3600.0


def test_a_run_that_hangs_with_busy_gpus_and_processors_is_idle_until_it_says_something_new(cluster):
    assert cluster.pass_by(60 * A_MINUTE, gpus=(100, 100), busy=2.0, hangs=True) == 3600.0
    cluster.count.hear("step 20", [{"event": "train", "step": 20, "loss": 2.0}])
    assert cluster.count.idle_s() == 0.0


def test_a_key_pressed_in_a_terminal_is_work_and_a_forgotten_terminal_is_none(cluster):
    cluster.pass_by(30 * A_MINUTE)
    cluster.typed["gpu-1"] = 1e9
    assert cluster.pass_by() == 0.0
    assert cluster.pass_by(30 * A_MINUTE) == 1800.0


def test_a_checkpoint_is_work(cluster):
    cluster.pass_by(30 * A_MINUTE)
    cluster.count.see((10, "model-10"))
    assert cluster.count.idle_s() == 0.0
    cluster.count.see((10, "model-10"))
    assert cluster.pass_by(A_MINUTE) == 60.0


def test_a_new_step_and_a_new_line_are_work_and_a_heartbeat_without_steps_is_not(cluster):
    for number in range(30):
        cluster.count.hear(f"rank 3 waits since {number} min", [])
        cluster.pass_by(A_MINUTE)
    assert cluster.count.idle_s() == 1800.0
    cluster.count.hear("downloading the next part", [])
    assert cluster.count.idle_s() == 0.0
    cluster.pass_by(A_MINUTE)
    cluster.count.hear("step 10", [{"event": "train", "step": 10, "loss": 2.0}])
    assert cluster.count.idle_s() == 60.0, "the step is the one of before"
    cluster.count.hear("step 20", [{"event": "train", "step": 20, "loss": 2.0}])
    assert cluster.count.idle_s() == 0.0


@pytest.mark.parametrize("lost", [{"is_read": False}, {"gpus": ()}, {"gpus": (0, None)}])
def test_a_missing_reading_freezes_the_count_and_neither_adds_to_it_nor_begins_it_anew(cluster, lost):
    cluster.pass_by(30 * A_MINUTE)
    assert cluster.pass_by(10 * A_MINUTE, **lost) is None
    assert cluster.pass_by() == 1800.0, "the time up to the first whole sample is not known"
    assert cluster.pass_by() == 1820.0


@pytest.mark.parametrize("gpus", [(), (0, None), (None, None)])
def test_gpus_that_were_not_read_for_long_are_left_out_and_the_rest_decides(cluster, gpus):
    cluster.pass_by(30 * A_MINUTE)
    cluster.pass_by(11 * A_MINUTE, gpus=gpus)
    counted = cluster.count.idle_s()
    assert cluster.pass_by(30 * A_MINUTE, gpus=gpus) == counted + 1800.0
    assert cluster.pass_by(gpus=gpus, busy=1.0) == 0.0


def test_a_card_at_work_beside_one_that_is_not_read_is_work(cluster):
    assert cluster.pass_by(60 * A_MINUTE, gpus=(None, 90)) == 0.0


def test_what_happened_while_readings_were_missing_shows_in_the_next_ones(cluster):
    cluster.pass_by(30 * A_MINUTE)
    cluster.pass_by(A_MINUTE, busy=1.0, is_read=False)
    assert cluster.pass_by() == 0.0


def test_a_machine_that_does_not_answer_freezes_the_count(cluster):
    cluster.pass_by(30 * A_MINUTE)
    cluster.now += EVERY_S
    cluster.count.observe([("gpu-0", cluster.facts("gpu-0")), ("gpu-1", None)], cluster.now)
    assert cluster.count.idle_s() is None


@pytest.mark.parametrize(("slept_s", "idle_s"), [(2 * EVERY_S, 1860.0), (7200.0, 0.0)])
def test_a_gap_of_more_than_three_intervals_voids_what_was_counted(cluster, slept_s, idle_s):
    cluster.pass_by(30 * A_MINUTE)
    cluster.now += slept_s
    assert cluster.pass_by() == idle_s
