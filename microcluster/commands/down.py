"""`fab down`: stop the job, cancel everything, check the account and print the receipt."""

from microcluster.command_line.command import STACK, Discard, FetchFirst, StackName, local_command
from microcluster.core.home import Home
from microcluster.rental.down import take_down
from microcluster.run.unsaved_work import choice
from microcluster.setup.environment import use_own_backend


@local_command
def down(stack: StackName = STACK, fetch_first: FetchFirst = False, discard: Discard = False) -> int:
    """Stop the job, cancel everything, and print the receipt; exit code 1 while anything of the stack is billed."""
    home = Home.of()
    use_own_backend(home)
    return take_down(home, stack, choice(fetch_first=fetch_first, discard=discard))
