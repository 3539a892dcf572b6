"""The stacks of this project: files, accounts, states and keys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.home import Home
from emulator.vendors import VENDORS
from microcluster import config
from microcluster.lifecycle import pulumi_state
from microcluster.lifecycle.emulated_account import Emulated
from microcluster.setup import keys
from microcluster.setup.errors import MISTAKE, SetupError
from microcluster.setup.progress import say


def known(name: str) -> str:
    """Return ``name``, or raise with the known stacks."""
    with _as_mistake():
        config.path_of(name)
    return name


def check(name: str, *, ordering: bool) -> None:
    """Raise with all problems of the stack file."""
    with _as_mistake():
        config.read_file(name, ordering=ordering)


def account_of(name: str) -> config.AccountSettings:
    """Return which account a stack is rented in."""
    with _as_mistake():
        return config.read_account(name)


def emulator_of(name: str, home: Home) -> Emulated | None:
    """Return the stack's emulated account; None for a real account.

    An emulator writes its credentials file into its own state folder, so the path decides.
    """
    account = account_of(name)
    state = Path(account.config_file).parent if account.config_file else None
    emulated = state and state.name == VENDORS[account.name].folder and state.is_relative_to(home.root)
    return Emulated(account.name, state) if state and emulated else None


def local_image_of(name: str) -> str | None:
    """Return the name of the local image that the stack's container builds on, or None."""
    with _as_mistake():
        return config.read_file(name).local_image


def prepare(names: tuple[str, ...], home: Home) -> None:
    """Create the missing states and keys of these stacks."""
    new = pulumi_state.ensure(names, home)
    made = [name for name in names if keys.ensure(home.keys / name, name)]
    if new:
        say(f"    new in {home.root}: the state of {', '.join(new)}")
    if made:
        say(f"    new in {home.keys}: ssh keys of {', '.join(made)}")


@contextmanager
def _as_mistake() -> Iterator[None]:
    try:
        yield
    except config.ConfigError as wrong:
        raise SetupError(str(wrong), MISTAKE) from wrong
