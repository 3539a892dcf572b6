"""The changes of `python -m tests.planted`, which takes minutes and is no part of `make test`."""

from pathlib import Path

from tests.planted.defects import DEFECTS, Defect


def test_every_planted_defect_still_applies_and_has_its_test() -> None:
    assert [flaw for each in DEFECTS if (flaw := each.flaw())] == []
    assert len({each.name for each in DEFECTS}) == len(DEFECTS)


def test_a_defect_that_no_longer_applies_is_said_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("same\nsame\n")
    twice = Defect("twice", "", "code.py", "same", "other", "code.py::test_it")
    assert twice.flaw(tmp_path) == "twice: code.py has 2 times and not once: same"
    absent = Defect("absent", "", "gone.py", "same", "other", "code.py::test_it")
    assert absent.flaw(tmp_path) == "absent: there is no gone.py"
