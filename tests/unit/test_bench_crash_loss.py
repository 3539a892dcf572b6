"""The virtual crashes of the benchmark, where their cost is known."""

import statistics

import pytest

from tools.bench import crash_loss


def test_what_a_crash_costs_is_half_an_interval_where_writing_and_copying_take_no_time(monkeypatch):
    monkeypatch.setattr(crash_loss, "WATCH_EVERY_S", 0.5)
    monkeypatch.setattr(crash_loss, "SEEDS", 6)
    setting = crash_loss.Setting("any", 1.0, 0.0, 100, 0, 1.0, 1.0)
    of_process, of_launcher = crash_loss.losses(setting)
    for lost in (of_process, of_launcher):
        assert statistics.fmean(lost) == pytest.approx(50, rel=0.05)
        assert max(lost) < 107


def test_what_is_not_copied_yet_is_lost_with_the_launcher_alone():
    setting = crash_loss.Setting("any", 1.0, 0.0, 100, 30, 1.0, 1.0)
    of_process, of_launcher = crash_loss.losses(setting)
    assert max(of_launcher) > 125 > max(of_process)
