"""The environment that every command of this project runs in, the same as ``env.sh`` gives, and the folders of this clone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

from microcluster.home import Home
from microcluster.setup.secret_env import kept

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
PULUMI = VENV / "bin" / "pulumi"
"""A link to the engine in use, so that one folder on PATH is enough."""
FAB = VENV / "bin" / "fab"
ARTIFACTS = PROJECT / "artifacts"
"""Where `fab fetch` puts runs."""
SETTINGS = PROJECT / "microcluster" / "setup" / "environment.env"
PART_OF_MAKE = "MICROCLUSTER_PART_OF_MAKE"
"""Set for a verb that make runs: make itself says at its end what to do next."""


def child_environment(home: Home, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``base`` with what ``microcluster/setup/environment.env`` says, and this project's commands first on PATH."""
    path = f"{VENV / 'bin'}{os.pathsep}{base.get('PATH', os.defpath)}"
    places = {"MICROCLUSTER_HOME": str(home.root), "MICROCLUSTER_CACHE": str(home.cache), "PATH": path}
    return {**base, **places, **settings(home)}


def with_account(home: Home) -> dict[str, str]:
    """The same with the account's variables, for `pulumi` and `fab`: nothing else that set-up starts needs them."""
    return child_environment(home) | kept()


def settings(home: Home) -> dict[str, str]:
    """Return the ``NAME=value`` lines of ``environment.env`` with ``$MICROCLUSTER_HOME`` filled in."""
    lines = (line.strip() for line in SETTINGS.read_text().splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name: Template(value).substitute(MICROCLUSTER_HOME=str(home.root)) for name, value in pairs}
