"""The same for several things at the same time."""

import threading

import pytest

from agent.machine import parallel


def test_the_answers_come_in_the_order_of_the_things_whoever_is_first():
    second_is_done = threading.Event()

    def act(number):
        if number == 1:
            assert second_is_done.wait(30)
        else:
            second_is_done.set()
        return 10 * number

    assert parallel(act, [1, 2]) == [10, 20]


def test_what_one_of_them_raises_is_raised_after_all_have_ended():
    ended = []

    def act(number):
        if number == 1:
            raise OSError("no such program")
        ended.append(number)

    with pytest.raises(OSError, match="no such program"):
        parallel(act, [1, 2, 3])
    assert sorted(ended) == [2, 3]
