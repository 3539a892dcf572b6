"""Commands killed at every call and while faults are injected: a seeded sample of what `make chaos` plays in full."""

from itertools import product

import pytest

from tests.chaos.cases import SIZES, counted, sample
from tests.chaos.engine import Verb
from tests.chaos.stage import Blow, Target
from tests.chaos.wire import Moment
from tests.chaos.workers import played, workers

pytestmark = pytest.mark.timeout(840)  # The first test waits for all runs of the sample, which takes minutes.
SEED = 4


@pytest.fixture(scope="module")
def pool():
    with workers() as pool:
        yield pool


@pytest.fixture(scope="module")
def sweeps(pool):
    return counted(SEED, pool)


@pytest.fixture(scope="module")
def runs(pool, sweeps):
    """One sample of everything that `make chaos` plays, for all tests."""
    return list(played(pool, sample(sweeps, SEED).items()))


@pytest.mark.parametrize("sweep", SIZES)
def test_whatever_happens_account_bill_and_state_are_as_wanted_in_the_end(sweeps, runs, sweep):
    of_sweep = [run for run in runs if run.number in sweeps[sweep]]
    assert of_sweep
    assert {f"case {run.number}: {run.case}": run.verdict.breaches for run in of_sweep if run.verdict.breaches} == {}


def test_the_sample_strikes_every_call_and_in_every_way(sweeps, runs):
    struck = [(run.case.attack, run.case.then) for run in runs if run.number in sweeps["kill"]]
    ways = {(attack.target, attack.blow, attack.moment, then) for attack, then in struck}
    assert ways == set(product(Target, Blow, Moment, Verb))
    calls = {(case.attack.verb, case.attack.number) for case in sweeps["kill"].values()}
    assert {(attack.verb, attack.number) for attack, _ in struck} == calls


def test_a_part_of_the_runs_is_over_tls_that_breaks(sweeps, runs):
    sampled = [[run.case for run in runs if run.number in sweeps[name]] for name in ("kill", "faults")]
    for cases in (*sampled, sweeps["command line"].values()):
        secure = [case.settings for case in cases if case.settings.get("tls")]
        assert any(each["faults"]["broken_tls"] > 0 for each in secure)


def test_most_strikes_come_in_time(sweeps, runs):
    struck = [run.was_struck for run in runs if run.number in sweeps["kill"]]
    # A busy computer asks less often than the count's, so that a command may end before its last numbers.
    assert struck.count(False) <= len(struck) // 4
