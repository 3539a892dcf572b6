"""The verbs behind the Makefile's targets."""

import os
from collections.abc import Callable, Mapping

from core.home import Home
from microcluster import config
from microcluster.lifecycle import emulated_account, stacks
from microcluster.lifecycle.down import down
from microcluster.lifecycle.up import preview, up
from microcluster.setup import pulumi_install
from microcluster.setup.environment import PYTHON, child_environment
from microcluster.setup.errors import MISTAKE, SetupError
from microcluster.setup.process import run_in_view
from microcluster.setup.progress import Stages, say
from tools import testing


def setup(home: Home, _: str) -> int:
    """Install what all stacks need."""
    stages = Stages()
    pulumi_install.ensure(home, stages)
    with stages.stage("stacks", "state and keys of every stack"):
        stacks.prepare(config.stacks(), home)
    say(f"Ready ({stages.summary()}).")
    say("Next: `make up` on the emulated account, or `make preview STACK=p100`. For the plain commands: . ./env.sh")
    return 0


def engine(home: Home, _: str) -> int:
    """Install the Pulumi engine only."""
    pulumi_install.ensure(home, Stages())
    return 0


def images(home: Home, _: str) -> int:
    """Build the local stack's missing images."""
    emulated_account.prepare_images(home, Stages())
    return 0


def emulator(home: Home, stack: str) -> int:
    """Start the emulated account of a stack, with the images of its machines."""
    account = stacks.emulator_of(stack, home)
    if account is None:
        raise SetupError(
            f"Stack {stack} has a real account, not an emulated one. Try: make emulator STACK=local", MISTAKE
        )
    emulated_account.start(account, home, Stages(), stacks.local_image_of(stack))
    say("Next: `make up`, or `. ./env.sh` and `python -m emulator status`.")
    return 0


def bench(home: Home, _: str) -> int:
    """Measure the project's own figures."""
    pulumi_install.ensure(home, Stages())
    return run_in_view((str(PYTHON), "-m", "tools.bench"), child_environment(home))


def chaos(home: Home, _: str) -> int:
    """Run the chaos test; SEED and CASE select one case."""
    pulumi_install.ensure(home, Stages())
    chosen = [
        word for name in ("SEED", "CASE") if (value := os.environ.get(name)) for word in (f"--{name.lower()}", value)
    ]
    return run_in_view((str(PYTHON), "-m", "tools.chaos", *chosen), child_environment(home))


VERBS: Mapping[str, Callable[[Home, str], int]] = {
    "setup": setup,
    "preview": preview,
    "up": up,
    "down": down,
    "test": lambda home, _: testing.test(home),
    "chaos": chaos,
    "bench": bench,
    "images": images,
    "engine": engine,
    "emulator": emulator,
}


def run(verb: str, home: Home, stack: str) -> int:
    """Run the verb of that name and return its exit code."""
    if verb not in VERBS:
        raise SetupError(f"There is no verb {verb!r}; there are {', '.join(VERBS)}. For example: make setup", MISTAKE)
    return VERBS[verb](home, stack)
