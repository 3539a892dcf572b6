"""What a person sees while set-up works."""

import re
import time

import pytest

from microcluster.setup import progress
from microcluster.setup.progress import Stages, moment, shown


def test_a_long_step_is_shown_with_its_usual_time_and_the_time_so_far(monkeypatch, capsys):
    with shown("creating stack local", "2 s"):
        pass
    assert capsys.readouterr().out == "", "of a quick one nothing"
    monkeypatch.setattr(progress, "QUICK_S", 0.01)
    monkeypatch.setattr(progress, "REPEAT_S", 0.2)
    with shown("building pulumi", "4 min"):
        time.sleep(0.5)
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "    building pulumi (usually 4 min)"
    assert re.fullmatch(r"    building pulumi: \d+ s so far \(usually 4 min\)", said[1])
    assert re.fullmatch(r"    building pulumi: done after \d+ s", said[-1])


@pytest.mark.parametrize(("error", "how"), [(ValueError, "failed"), (KeyboardInterrupt, "interrupted")])
def test_a_step_that_did_not_end_well_says_so_at_once(error, how, capsys):
    with pytest.raises(error), shown("creating stack local", "2 s"):
        raise error
    assert capsys.readouterr().out.startswith(f"    creating stack local: {how} after ")


def test_the_summary_names_a_stage_that_failed_too() -> None:
    stages = Stages()
    with stages.stage("engine", "first"):
        pass
    with pytest.raises(RuntimeError), stages.stage("images", "second"):
        raise RuntimeError
    assert re.fullmatch(r"engine \d+ s, images \d+ s", stages.summary())


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
