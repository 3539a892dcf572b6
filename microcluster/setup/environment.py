"""The environment of every command of this project, as in ``env.sh``, and the folders of this clone."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

from microcluster.core.home import Home
from microcluster.setup.secret_env import kept, withhold

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
FAB = VENV / "bin" / "fab"
PULUMI = VENV / "bin" / "pulumi"
"""A link to the engine."""
ARTIFACTS = PROJECT / "artifacts"
"""The folder of fetched runs."""
SETTINGS = PROJECT / "microcluster" / "setup" / "environment.env"
BACKEND = "PULUMI_BACKEND_URL"
"""Variable with the address of Pulumi's states."""


def fetched_folder(stack: str, run: str | None, word: str | None) -> Path:
    """Return where one training of a run is on this computer: one more training of the same run does not overwrite it."""
    run, word = (re.sub("[^0-9a-f]", "", text or "")[:64] for text in (run, word))  # A machine has said them.
    return ARTIFACTS / Home.of().label_of(stack) / f"{run}-{word}"


def child_environment(home: Home, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return ``base`` with the variables of ``environment.env`` and this project's commands first on PATH."""
    path = f"{VENV / 'bin'}{os.pathsep}{base.get('PATH', os.defpath)}"
    places = {"MICROCLUSTER_HOME": str(home.root), "MICROCLUSTER_CACHE": str(home.cache), "PATH": path}
    return {**base, **places, **settings(home)}


def use_own_backend(home: Home) -> None:
    """Let this process and what it starts read the same state as ``make``: that of this home."""
    os.environ.update(settings(home))


def with_account(home: Home) -> dict[str, str]:
    """Return the environment with the account's variables, which only `pulumi` and `fab` need."""
    return child_environment(home) | kept()


def settings(home: Home) -> dict[str, str]:
    """Return the ``NAME=value`` lines of ``environment.env`` with ``$MICROCLUSTER_HOME`` filled in."""
    lines = (line.strip() for line in SETTINGS.read_text().splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name: Template(value).substitute(MICROCLUSTER_HOME=str(home.root)) for name, value in pairs}


def main() -> None:
    """Become the program that the command line names, with this environment and without any key of an account."""
    withhold()
    os.execve(sys.argv[1], sys.argv[1:], child_environment(Home.of()))


if __name__ == "__main__":
    main()
