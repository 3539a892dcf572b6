"""`fab status`: where the job stands, on which machines, and what it costs."""

from typing import Annotated

from microcluster.command_line.command import STACK, AsJson, Option, StackName, command
from microcluster.command_line.parts import print_json
from microcluster.config.stack import read_file
from microcluster.core.plain_text import say
from microcluster.display import preflight_table
from microcluster.planning.run_cost import Cost
from microcluster.run.cluster import cost_of
from microcluster.run.status import observed, status_facts, status_text


@command
def status(
    stack: StackName = STACK,
    as_json: AsJson = False,
    preflight: Annotated[bool, Option("show every preflight check")] = False,
) -> int:
    """Show the job's state and cost; with --preflight also every preflight check."""
    cluster, outcome = observed(stack)
    if cluster is None:
        read_file(stack)  # Refuses a broken one, with which nothing could be brought up.
    cost = cost_of(cluster) if cluster else Cost(None, None)
    if as_json:
        print_json(status_facts(stack, cluster, outcome, cost) | ({"checks": outcome.checks} if preflight else {}))
    elif cluster is None:
        say(f"stack {stack} is not up. Bring it up: make up STACK={stack}")
    else:
        say(status_text(cluster, outcome, cost))
        if preflight:
            say(preflight_table.table(outcome.checks))
    return 0
