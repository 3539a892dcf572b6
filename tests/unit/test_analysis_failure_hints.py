"""What a person is told to do next, for every cause."""

import re

import pytest

from agent.batch import grant
from agent.readers import pattern
from agent.supervise import guard, health_rules
from microcluster.analysis.failure_hints import NEXT, next_for, next_step
from microcluster.analysis.run_state import Outcome

OF_ALARMS = (
    *health_rules.ENDING,
    *(health_rules.TOLD_TO_END, health_rules.DISK_LOW, health_rules.GPUS_AT_REST, health_rules.HUNG),
    *(pattern.UNREAD, health_rules.SLOW, health_rules.NOT_COPIED),
)
OF_SUPERVISORS = (
    *("supervisor-gone", "supervisor-silent", "supervisor-failed", "preparing", "training", "incomplete"),
    *("not-brought-back", health_rules.PREPARING_STALLED, "placing", "environment", "shared-folder", "preflight"),
)
OF_QUEUES = ("queue", grant.CAUSE)


def test_every_cause_that_the_launcher_names_has_a_next_step_and_no_other_has():
    assert set(NEXT) == {*OF_ALARMS, *OF_SUPERVISORS, *OF_QUEUES, *guard.CAUSES}
    assert next_for("not-copied", "p100").endswith("fab ssh gpu-1 --stack p100."), "it ends as a sentence"


@pytest.mark.parametrize("cause", [*NEXT, "unknown"])
def test_the_next_step_names_a_command_with_the_stack(cause):
    said = next_step(Outcome("failed", cause=cause), "p100")
    assert re.search(r"(make \w+ STACK=p100|fab \w+ (\S+ )?--(stack|follow --stack) p100)", said)
