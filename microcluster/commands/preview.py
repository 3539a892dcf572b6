"""`fab preview`: what `fab up` would rent, its price, and what the run will take."""

from microcluster.command_line.command import STACK, StackName, local_command
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.core.plain_text import say
from microcluster.guard.installed import say_limits
from microcluster.lifecycle import pulumi
from microcluster.lifecycle.pulumi_state import prepare_stacks
from microcluster.setup import engine
from microcluster.setup.errors import CommandFailed
from microcluster.setup.progress import Stages


@local_command
def preview(stack: StackName = STACK) -> int:
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
