"""`fab receipt`: what was rented under the stack's mark, read from the account; needs neither state nor journal."""

from microcluster.command_line.command import STACK, command
from microcluster.rental.receipt import print_receipt


@command
def receipt(stack: str = STACK, as_json: bool = False, show_all: bool = False) -> int:
    """Print what was last rented under the stack's mark and what is still billed; exit code 1 while anything is."""
    return print_receipt(stack, as_json=as_json, show_all=show_all)
