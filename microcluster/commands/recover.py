"""`fab recover`: repair a stack after a crash: no process, no lock, a readable state and no unfinished order are left."""

from typing import Annotated

from microcluster.command_line.command import STACK, Option, StackName, Yes, command
from microcluster.rental.recover import recover_stack


@command
def recover(
    stack: StackName = STACK,
    yes: Yes = False,
    cancel: Annotated[
        bool, Option("cancel everything with the stack's mark instead of keeping it for the next up")
    ] = False,
) -> int:
    """Repair a stack after a crash: processes, lock, state, unfinished orders; machines stay unless --cancel is given."""
    return recover_stack(stack, yes=yes, cancel=cancel)
