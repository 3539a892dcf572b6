"""`fab preview`: what `fab up` would rent, its price, and what the run will take."""

from microcluster.commands.command_line import STACK, CommandFailed, local_command
from microcluster.commands.guard import say_limits
from microcluster.commands.setup import prepare_stacks
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.core.plain_text import say
from microcluster.lifecycle import pulumi
from microcluster.setup import engine
from microcluster.setup.progress import Stages


@local_command
def preview(stack: str = STACK) -> int:
    """Show what `up` would rent, its price, and what the run will take; needs no account."""
    home = Home.of()
    known = config.read_file(stack, ordering=False)
    engine.ensure(home, Stages())
    prepare_stacks((stack,), home)
    if pulumi.run(home, "preview", "-s", stack):
        raise CommandFailed("The preview failed for the reason above; nothing was ordered.")
    say_limits(known)
    say(f"Next: `make up STACK={stack}` rents this.")
    return 0
