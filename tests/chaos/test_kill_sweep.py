"""Commands struck at every call: a seeded sample of the sweep that `make chaos` plays in full."""

from __future__ import annotations

from itertools import product

import pytest

from chaos import sweep
from chaos.campaign import Played, played
from chaos.engine import Verb
from chaos.kill import Blow, Case, Target
from chaos.wire import Moment

SEED = 4
SIZE = 120


@pytest.fixture(scope="module")
def runs() -> list[Played]:
    return list(played(sweep.cases(SEED, SIZE).items()))


def test_whatever_is_killed_the_next_command_leaves_account_bill_and_state_as_wanted(runs):
    assert {str(run.case): run.verdict.breaches for run in runs if run.verdict.breaches} == {}


def test_the_sample_strikes_every_call_and_in_every_way(runs):
    assert sum(not run.was_struck for run in runs if isinstance(run.case, Case)) <= len(runs) // 20
    struck = [run.case for run in runs if isinstance(run.case, Case)]
    ways = {(case.target, case.blow, case.moment, case.then) for case in struck}
    assert ways == set(product(Target, Blow, Moment, Verb))
    for verb in Verb:
        numbers = {case.number for case in struck if case.verb is verb}
        assert numbers == set(range(1, max(numbers) + 1))
