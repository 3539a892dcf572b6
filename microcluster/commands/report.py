"""`fab report`: machines, results and cost of the run; on the terminal, as JSON and as an HTML page."""

from microcluster.command_line.command import STACK, AsJson, StackName, command
from microcluster.run.report import report_run


@command
def report(stack: StackName = STACK, as_json: AsJson = False) -> int:
    """Report machines, results and cost of the run, also as a page, of what was fetched where nothing is rented; exit code 1 unless finished."""
    return report_run(stack, as_json=as_json)
