"""The stacks of this project: their names, and what set-up must know of their files."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from microcluster import config
from microcluster.home import Home
from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import MISTAKE, SetupError

STACKS = PROJECT / "stacks"


def names(folder: Path = STACKS) -> tuple[str, ...]:
    """The stacks that have a file, in order."""
    return tuple(
        sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in folder.glob("Pulumi.*.yaml"))
    )


def known(name: str, folder: Path = STACKS) -> str:
    """``name``, or a sentence that lists the stacks."""
    there = names(folder)
    if name in there:
        return name
    near = difflib.get_close_matches(name, there, 1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise SetupError(
        f"There is no stack {name!r}; there are {', '.join(there)}.{meant} For example: make preview STACK={there[0] if there else 'local'}",
        MISTAKE,
    )


def check(name: str, *, ordering: bool) -> None:
    """Raise with all that is wrong with the stack file, before anything is prepared for it."""
    with _as_mistake():
        config.read_file(name, ordering=ordering)


def emulator_of(name: str, home: Home, folder: Path = STACKS) -> Path | None:
    """The state folder of the emulator that plays the account of stack ``name``; None when its account is a real one.

    An emulator writes the credentials file of its account into its own state folder, so the file's place tells.
    """
    named = account_file_of(name, folder)
    if not named:
        return None
    state = home.expand(named).parent
    return state if state.name == "emulator" and state.is_relative_to(home.root) else None


def account_file_of(name: str, folder: Path = STACKS) -> str | None:
    """The file that the stack names for its account's key, as it is written; without one the client's usual sources hold."""
    with _as_mistake():
        named = config.read_values(folder / f"Pulumi.{name}.yaml").get("softlayer:configFile")
    return str(named) if named else None


@contextmanager
def _as_mistake() -> Iterator[None]:
    try:
        yield
    except config.ConfigError as wrong:
        raise SetupError(str(wrong), MISTAKE) from wrong
