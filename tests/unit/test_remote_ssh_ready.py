"""The one wait, and doing the same on all hosts."""

import time

import pytest
from fake_machine import FakeMachine

from microcluster.core.polling import NotReadyError, wait_until
from microcluster.remote.errors import LoginRefusedError, RemoteError, UnreachableError
from microcluster.remote.host import wait_for_ssh
from microcluster.remote.parallel import on_all


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_wait_returns_the_thing_itself():
    clock, answers = Clock(), iter([None, False, "", [], "here"])
    assert wait_until("it", lambda: next(answers), timeout_s=10, clock=clock, sleep=clock.sleep) == "here"
    assert clock.now == 4


def test_a_wait_raises_at_its_limit_and_shows_its_duration(capsys):
    clock = Clock()
    with pytest.raises(NotReadyError, match="waiting for it: not there after 20 s, usually 5 s"):
        wait_until("it", lambda: None, timeout_s=20, usual_s=5, clock=clock, sleep=clock.sleep)
    assert "waiting for it: 5 s so far, usually 5 s" in capsys.readouterr().err


class Booting(FakeMachine):
    """Answers each connect with the next of ``answers``."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)

    def connect(self):
        answer = self.answers.pop(0)
        if answer:
            raise answer


def test_a_booting_machine_is_waited_for_until_a_permanent_error():
    machine = Booting(UnreachableError("refused"), LoginRefusedError("no key yet"), None)
    wait_for_ssh(machine, every_s=0.01)
    assert machine.answers == []
    with pytest.raises(RemoteError):
        wait_for_ssh(Booting(RemoteError("other"), None), every_s=0.01)


def test_a_machine_that_never_gets_ready_is_named_with_its_last_error():
    with pytest.raises(UnreachableError, match="The last error: refused"):
        wait_for_ssh(Booting(*[UnreachableError("refused")] * 50), timeout_s=0.05, every_s=0.01)


def test_one_error_has_every_hosts_failure_and_an_unexpected_one_too():
    def fail(host):
        raise RemoteError(f"broken {len(host.changes)}")

    with pytest.raises(RemoteError, match="broken 0\nbroken 1"):
        on_all([FakeMachine(), FakeMachine(changes=["x"])], fail)
    with pytest.raises(ZeroDivisionError):
        on_all([1, 0], lambda number: 1 / number)


def test_a_host_that_is_not_over_in_time_has_failed():
    with pytest.raises(RemoteError, match="working on 60: not over after 0 s"):
        on_all([0, 60], time.sleep, timeout_s=0.3)


def test_a_host_that_does_not_answer_does_not_delay_the_others():
    began = time.monotonic()
    answers = on_all([0, 60], lambda seconds: time.sleep(seconds) or "done", late="late", timeout_s=2)
    assert answers == ["done", "late"]
    assert time.monotonic() - began < 50
