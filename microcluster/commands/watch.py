"""`fab watch`: follow the job in a live panel, or as plain lines where there is no terminal; it only reads."""

from microcluster.command_line.command import STACK, StackName, command
from microcluster.guard.watching import LIMIT, bring_to_its_end, follow_run


@command
def watch(stack: StackName = STACK) -> int:
    """Follow the job until it ends; Ctrl-C stops following and leaves the job running. Holds the stack to its guard meanwhile."""
    code = follow_run(stack)
    return bring_to_its_end(stack) if code == LIMIT else code
