"""`fab resume`: continue the job on machines that stay."""

from microcluster.command_line.command import STACK, StackName, command
from microcluster.guard.watching import resume_watched


@command
def resume(stack: StackName = STACK) -> int:
    """Continue the job from its newest checkpoint, also after a machine was rebooted."""
    return resume_watched(stack)
