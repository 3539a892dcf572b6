"""What all stacks need on this machine: the Pulumi engine, the home's folders, each stack and its keys."""

from __future__ import annotations

from microcluster.home import Home
from microcluster.setup import engine, keys, plugin, stacks, state
from microcluster.setup.environment import PULUMI
from microcluster.setup.progress import Stages, say


def prepare_engine(home: Home, stages: Stages) -> None:
    """Have Pulumi's CLI, language host and command plugin."""
    with stages.stage("engine", "Pulumi's command line and plugins"):
        engine.ensure(home)
        plugin.ensure(home)


def take_engine(home: Home, stages: Stages) -> None:
    """Have an engine without installing anything where there is one: it took the stack up, so it can take it down."""
    if not (PULUMI.exists() and plugin.is_any_there(home)):
        prepare_engine(home, stages)


def prepare_stacks(home: Home, stages: Stages) -> None:
    """Have every stack of this project in the backend, and its keys."""
    with stages.stage("stacks", "state and keys of every stack"):
        names = stacks.names()
        new = state.ensure_stacks(names, home)
        made = [name for name in names if keys.ensure(home.keys / name, name)]
        if new:
            say(f"    new in {home.root}: the state of {', '.join(new)}")
        if made:
            say(f"    new in {home.keys}: ssh keys of {', '.join(made)}")


def setup(home: Home) -> int:
    """Install what all stacks need; `make setup`."""
    stages = Stages()
    prepare_engine(home, stages)
    prepare_stacks(home, stages)
    say(f"Ready ({stages.summary()}).")
    say(
        "Next: `make up` on the account that is emulated here, or `make preview STACK=p100`. For the plain commands: . ./env.sh"
    )
    return 0
