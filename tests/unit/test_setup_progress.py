"""What a person sees while set-up works."""

import io

import pytest

from microcluster.setup.progress import Stages, Ticker, moment


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_step_prints_a_line_every_half_minute_without_a_terminal() -> None:
    out, clock = io.StringIO(), Clock()
    ticker = Ticker("building pulumi", "4 min", out, clock)
    for clock.seconds in range(1, 65):
        ticker.tick()
    ticker.end("done")
    assert out.getvalue().splitlines() == [
        "    building pulumi (usually 4 min)",
        "    building pulumi: 30 s so far (usually 4 min)",
        "    building pulumi: 1 min so far (usually 4 min)",
        "    building pulumi: done after 1 min 4 s",
    ]


def test_a_quick_step_that_went_well_says_nothing_and_one_that_failed_says_so() -> None:
    for how, lines in (("done", 0), ("failed", 1)):
        out, clock = io.StringIO(), Clock()
        ticker = Ticker("creating stack local", "2 s", out, clock)
        clock.seconds = 1
        ticker.tick()
        ticker.end(how)
        assert len(out.getvalue().splitlines()) == lines


def test_on_a_terminal_one_line_is_redrawn_and_nothing_of_the_longer_one_is_left() -> None:
    out, clock = Terminal(), Clock()
    ticker = Ticker("building", "4 min", out, clock)
    clock.seconds = 61
    ticker.tick()
    ticker.end("done")
    first, last = out.getvalue().rstrip("\n").split("\r")[1:]
    assert first == "    building: 1 min 1 s (usually 4 min)"
    assert last.rstrip() == "    building: done after 1 min 1 s"
    assert len(last) == len(first)


def test_the_summary_names_a_stage_that_failed_too() -> None:
    stages = Stages()
    with stages.stage("engine", "first"):
        pass
    with pytest.raises(RuntimeError), stages.stage("images", "second"):
        raise RuntimeError
    assert stages.summary() == "engine 0 s, images 0 s"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026-11-21T14:40:08.123456789+01:00", "2026-11-21 13:40:08 UTC"),
        ("2026-11-21T13:40:08Z", "2026-11-21 13:40:08 UTC"),
        ("2026-11-21T13:40:08", "2026-11-21T13:40:08"),
        ("an unknown time", "an unknown time"),
    ],
)
def test_a_time_that_a_program_wrote_is_shown_in_utc(written: str, shown: str) -> None:
    assert moment(written) == shown
