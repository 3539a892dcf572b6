"""`fab receipt`: what was rented under the stack's mark, read from the account; needs neither state nor journal."""

from typing import Annotated

from microcluster.command_line.command import STACK, AsJson, Option, StackName, command
from microcluster.rental.receipt import print_receipt


@command
def receipt(
    stack: StackName = STACK,
    as_json: AsJson = False,
    show_all: Annotated[bool, Option("show all rentals, not only the last one", name="all")] = False,
) -> int:
    """Print what was last rented under the stack's mark and what is still billed; exit code 1 while anything is, 3 where that is unknown."""
    return print_receipt(stack, as_json=as_json, show_all=show_all)
