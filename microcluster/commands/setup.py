"""`fab setup`, `fab engine`, `fab images` and `fab emulator`: install and start what stacks need on this computer."""

from collections.abc import Sequence
from typing import Annotated

from microcluster.command_line.command import STACK, Option, StackName, local_command
from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.core.plain_text import say
from microcluster.lifecycle import emulated_account
from microcluster.lifecycle.pulumi_state import prepare_stacks
from microcluster.setup import engine as pulumi_engine
from microcluster.setup.errors import UserMistake
from microcluster.setup.progress import Stages


@local_command
def setup() -> int:
    """Install what all stacks need."""
    home, stages = Home.of(), Stages()
    pulumi_engine.ensure(home, stages)
    with stages.stage("stacks", "state and keys of every stack"):
        prepare_stacks(config.stacks(), home)
    say(f"Ready ({stages.summary()}).")
    say("Next: `make up` on the emulated account, or `make preview STACK=p100`. For the plain commands: . ./env.sh")
    return 0


@local_command
def engine() -> int:
    """Install the Pulumi engine only."""
    pulumi_engine.ensure(Home.of(), Stages())
    return 0


@local_command
def images(
    only: Annotated[
        Sequence[str] | None,
        Option("build these images instead of those of the local stack: one or more names", may_be_left_out=True),
    ] = None,
) -> int:
    """Build the images of the local stack's machines and training."""
    emulated_account.prepare_images(Home.of(), Stages(), tuple(only or ()))
    return 0


@local_command
def emulator(stack: StackName = STACK) -> int:
    """Start the emulated account of the stack, with the images of its machines."""
    home, known = Home.of(), config.read_file(stack)
    account = emulated_account.of_account(known.account, home)
    if account is None:
        raise UserMistake(f"Stack {stack} has a real account, not an emulated one. Try: make emulator STACK=local")
    emulated_account.start(account, home, Stages(), known.local_image)
    say("Next: `make up`, or `. ./env.sh` and `python -m emulator status`.")
    return 0
