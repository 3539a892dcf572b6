"""Commands killed at every call and while faults are injected: a seeded sample of what `make chaos` plays in full."""

from itertools import product

import pytest

from tools.chaos import cli, faults, kill, loss, paperspace, queue, second
from tools.chaos.engine import Verb
from tools.chaos.kill import Blow, Target
from tools.chaos.wire import Moment

pytestmark = pytest.mark.timeout(840)  # The first test waits for all runs of the sample, which takes minutes.


@pytest.mark.parametrize(
    "sweep",
    [kill, loss, faults, cli, second, paperspace, queue],
    ids=["kill", "loss", "faults", "command line", "second account", "paperspace", "queue"],
)
def test_whatever_happens_account_bill_and_state_are_as_wanted_in_the_end(runs, sweep):
    of_sweep = [run for run in runs if isinstance(run.case, sweep.Case)]
    assert of_sweep
    assert {f"case {run.number}: {run.case}": run.verdict.breaches for run in of_sweep if run.verdict.breaches} == {}


def test_the_sample_strikes_every_call_and_in_every_way(everything, runs):
    struck = [run.case for run in runs if isinstance(run.case, kill.Case)]
    ways = {(case.target, case.blow, case.moment, case.then) for case in struck}
    assert ways == set(product(Target, Blow, Moment, Verb))
    calls = {(case.verb, case.number) for case in everything.kills.values()}
    assert {(case.verb, case.number) for case in struck} == calls


def test_a_part_of_the_runs_is_over_tls_that_breaks(everything, runs):
    played = [[run.case for run in runs if isinstance(run.case, sweep.Case)] for sweep in (kill, faults)]
    for cases in (*played, everything.command_lines.values()):
        secure = [case.settings for case in cases if case.settings.get("tls")]
        assert any(each["faults"]["broken_tls"] > 0 for each in secure)


def test_most_strikes_come_in_time(runs):
    struck = [run.was_struck for run in runs if isinstance(run.case, kill.Case)]
    # A busy computer asks less often than the count's, so that a command may end before its last numbers.
    assert struck.count(False) <= len(struck) // 4
