"""A preparation in which nothing moves is ended."""

import pytest
from supervised_run import carry_out, end_run, hurry

SLEEPS = ["sh", "-c", "exec sleep 60"]


def impatient(folder, idle_s=2):
    hurry(folder, "supervise/prepare.py", "IDLE_S = 900", f"IDLE_S = {idle_s}")
    hurry(folder, "supervise/prepare.py", "LOOK_EVERY_S = 15", "LOOK_EVERY_S = 0.2")
    hurry(folder, "supervise/prepare.py", "PROBE_TIMEOUT_S = 30", "PROBE_TIMEOUT_S = 2")


@pytest.mark.parametrize(
    ("step", "doing"),
    [
        ({"spread": SLEEPS}, "bringing the data to gpu-1"),
        ({"data": ["false"], "stage": SLEEPS}, "preparing the data set"),
        ({"data": ["sh", "-c", "[ $0 = has ] && exec sleep 60; false"]}, "asking gpu-1 for the data"),
        (
            {"data": ["sh", "-c", "case $0 in bring) exec sleep 60 ;; has) ;; *) false ;; esac"]},
            "bringing the data from gpu-1",
        ),
    ],
)
def test_a_preparation_in_which_nothing_moves_ends_with_the_step_and_the_node(folder, step, doing):
    impatient(folder)
    way = 'case $2 in *conv=fsync*) exec sleep 60 ;; *) eval "$2" ;; esac'
    outcome = carry_out(folder, ssh=["sh", "-c", way, "ssh"], **step)
    assert (outcome.state, outcome.cause) == ("failed", "preparing-stalled")
    assert outcome.reason == f"{doing}: nothing was read, written or computed for 2 s; no write ends on gpu-1"
    assert end_run(folder)["ended"] == 0


def test_a_preparation_that_is_slow_but_moves_is_left_alone(folder):
    impatient(folder, idle_s=4)
    moves = "for n in 1 2 3 4 5 6; do head -c 2000000 /dev/zero > /dev/null; sleep 1; done"
    assert carry_out(folder, spread=["sh", "-c", moves]).state == "finished"
