"""`fab stop`: end the job on machines that stay."""

from microcluster.command_line.command import STACK, AsJson, StackName, command
from microcluster.run.job import stop_run


@command
def stop(stack: StackName = STACK, as_json: AsJson = False) -> int:
    """Stop the job and prove that no process of it is left; the machines stay and keep costing money."""
    return stop_run(stack, as_json=as_json)
