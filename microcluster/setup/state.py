"""Where Pulumi remembers what is rented: a folder of the home, with one stack per stack file."""

from __future__ import annotations

from dataclasses import dataclass

from microcluster.home import Home
from microcluster.lifecycle import pulumi_state
from microcluster.setup.environment import PULUMI, child_environment
from microcluster.setup.errors import SetupError
from microcluster.setup.process import Step, run_logged

QUICK_S = 60


@dataclass(frozen=True)
class Holdings:
    """What Pulumi's state says of a stack."""

    resources: int
    rented: int
    """Resources of the account, orders that were under way when a pulumi was killed included."""


def holdings(name: str, home: Home) -> Holdings:
    """Count what the state holds of a stack; nothing when the stack does not exist."""
    try:
        found = pulumi_state.read(name, home) or pulumi_state.NOTHING
    except pulumi_state.BrokenStateError as broken:
        raise SetupError(
            f"Reading Pulumi's state of stack {name} in {pulumi_state.path_of(name, home)}: {broken}. "
            f"Next: `fab recover --stack {name}` puts the newest readable copy in its place and asks the account."
        ) from broken
    return Holdings(found.resources, len(found.held))


def is_broken(name: str, home: Home) -> bool:
    """Whether there is a state file of the stack that cannot be read."""
    try:
        pulumi_state.read(name, home)
    except pulumi_state.BrokenStateError:
        return True
    return False


def ensure_stacks(names: tuple[str, ...], home: Home) -> tuple[str, ...]:
    """Create those of the stacks that do not exist yet; return their names."""
    home.make()
    existing = pulumi_state.stacks_in(home)
    new = tuple(name for name in names if name not in existing)
    for name in new:
        _create(name, home)
    return new


def _create(name: str, home: Home) -> None:
    argv = (str(PULUMI), "stack", "init", name, "--no-select")
    hint = f"Run `. ./env.sh` and `pulumi stack init {name}` to see more."
    step = Step(f"creating stack {name}", "2 s", argv, home.logs / "stack.log", hint, QUICK_S)
    run_logged(step, child_environment(home))
