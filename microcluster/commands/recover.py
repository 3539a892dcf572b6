"""`fab recover`: repair a stack after a crash: no process, no lock, a readable state and no unfinished order are left."""

from microcluster.command_line.command import STACK, command
from microcluster.rental.recover import recover_stack


@command
def recover(stack: str = STACK, yes: bool = False, cancel: bool = False) -> int:
    """Repair a stack after a crash: processes, lock, state, unfinished orders; machines stay unless --cancel is given."""
    return recover_stack(stack, yes=yes, cancel=cancel)
