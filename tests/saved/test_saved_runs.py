"""Runs of strangers' programs of which no byte may get lost; more of them: `python -m tests.saved --cases 500`."""

import secrets

import pytest

from tests.saved.case import FINISHED, FORMS, case_of, play

SEED, CASES = secrets.randbelow(10**6), 24


@pytest.mark.parametrize("number", range(CASES))
def test_every_byte_of_a_run_is_fetched_or_named(tmp_path, number):
    case = case_of(SEED, number)
    played = play(case, tmp_path)
    assert played.flaws == [], "\n".join([f"python -m tests.saved --seed {SEED} --case {number}", *played.log])


def test_cases_have_all_kinds_of_programs_machines_and_ends():
    cases = [case_of(7, number) for number in range(500)]
    assert {case.form for case in cases} == set(FORMS)
    assert {(case.nodes, case.shared) for case in cases} == {
        (1, False),
        *((n, s) for n in (2, 3) for s in (False, True)),
    }
    assert {len(case.attempts) for case in cases} == {1, 2, 3, 4}
    assert any(case.attempts[-1].ends != FINISHED for case in cases)
