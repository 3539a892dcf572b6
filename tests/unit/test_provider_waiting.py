"""The one wait."""

import threading
import time

import pytest

from microcluster.accounts.paperspace.__main__ import PAPERSPACE
from microcluster.accounts.paperspace.account import Paperspace
from microcluster.accounts.shared.account import Pending
from microcluster.accounts.shared.errors import ProviderError, WaitError
from microcluster.accounts.shared.order import SHORTEST_PAUSE_S, STANDING_S, Log, Operation, Session
from microcluster.accounts.softlayer.__main__ import SOFTLAYER
from microcluster.accounts.softlayer.account import SoftLayer


def waiter(limit_s: float = 1000, stop: threading.Event | None = None, scale: float = 0.001, tell=lambda _: None):
    session = Session(lambda: None, scale, stop or threading.Event())
    return Operation("", session, Log(tell, tell, tell), limit_s)


def test_a_wait_returns_its_result_and_ends_when_a_look_raises():
    def gone() -> Pending:
        raise ProviderError("it is gone")

    answers = iter([Pending("building"), Pending("building"), "ready"])
    assert waiter().wait_until("it", lambda: next(answers)) == "ready"
    with pytest.raises(ProviderError, match="it is gone"):
        waiter().wait_until("it", gone)


def test_a_wait_raises_at_its_limit_and_says_what_was_going_on():
    with pytest.raises(WaitError, match="waiting for gpu-0: not within the time allowed .in transaction POWER_ON"):
        waiter(limit_s=30).wait_until("gpu-0", lambda: Pending("in transaction POWER_ON", 90))


def test_a_stop_ends_a_long_pause_at_once():
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    with pytest.raises(WaitError, match="stopped on request"):
        waiter(3600, stop, scale=120).wait_until("it", lambda: Pending("building"))
    assert time.monotonic() - began < 30, "the shortest pause is a minute"


def test_a_wait_pauses_between_two_looks():
    paused: list[float | None] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            paused.append(timeout)
            return False

    answers = iter([Pending("building"), Pending("building"), "ready"])
    waiter(stop=Stop(), scale=1).wait_until("it", lambda: next(answers))
    assert paused == [SHORTEST_PAUSE_S, SHORTEST_PAUSE_S]


def test_progress_shows_elapsed_and_usual_time():
    told: list[str] = []
    answers = iter([Pending("in transaction A", 90), Pending("in transaction A", 90), Pending("in transaction B"), 1])
    waiter(tell=told.append).wait_until("it", lambda: next(answers))
    assert told == ["in transaction A, 0 s so far (this step usually takes 1 min 30 s)", "in transaction B, 0 s so far"]


@pytest.mark.parametrize(("limit_s", "within_s"), [(20, 5000), (5000, 20)])
def test_a_part_of_a_wait_never_outlasts_the_whole(limit_s, within_s):
    began = time.monotonic()
    with pytest.raises(WaitError, match="not within the time allowed"):
        waiter(limit_s).wait_until("it", lambda: Pending("building"), within_s)
    assert time.monotonic() - began < 3


@pytest.mark.parametrize(("vendor", "market"), [(SOFTLAYER, SoftLayer), (PAPERSPACE, Paperspace)])
def test_every_resource_has_the_time_of_an_order_with_a_lost_answer(vendor, market):
    short = [each.DECLARED.TOKEN for each in vendor.resources if market.settled_s + STANDING_S > each.TIMEOUT_S]
    assert short == []
