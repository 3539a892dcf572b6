"""Where everything lives, and the environment that every command of this project runs in (the same as ``env.sh``)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from microcluster.setup.secret_env import kept

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
PULUMI = VENV / "bin" / "pulumi"
"""A link to the engine in use, so that one folder on PATH is enough."""
FAB = VENV / "bin" / "fab"
SETTINGS = PROJECT / "microcluster" / "setup" / "environment.env"
PRIVATE_DIR = 0o700
PART_OF_MAKE = "MICROCLUSTER_PART_OF_MAKE"
"""Set for a verb that make runs: make itself says at its end what to do next."""


@dataclass(frozen=True)
class Home:
    """A person's folder (``MICROCLUSTER_HOME``) and the cache, which several homes may share (``MICROCLUSTER_CACHE``)."""

    root: Path
    cache: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Home:
        """The home that ``environment`` names, or the default one; it need not exist."""
        root = Path(environment.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()
        cache = environment.get("MICROCLUSTER_CACHE")
        return cls(root, Path(cache).expanduser().absolute() if cache else root / "cache")

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def keys(self) -> Path:
        return self.root / "keys"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @property
    def plugins(self) -> Path:
        return self.root / "pulumi" / "plugins"

    @property
    def logs(self) -> Path:
        return self.root / "cache" / "logs"

    def make(self) -> None:
        """Create the folders that must exist before anything runs, readable by their owner alone."""
        for folder in (self.root, self.state, self.keys, self.locks, self.root / "pulumi", self.cache, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
        self.root.chmod(PRIVATE_DIR)

    def expand(self, path: str) -> Path:
        """A path as stack files write it: it may begin with ``~/`` or ``$MICROCLUSTER_HOME/``."""
        # Not config.expand: this module also runs where nothing is installed yet, and config needs packages.
        named = Template(path).safe_substitute(HOME=str(Path.home()), MICROCLUSTER_HOME=str(self.root))
        return Path(named).expanduser().absolute()


def child_environment(home: Home, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """``base`` with what ``microcluster/setup/environment.env`` says, and this project's commands first on PATH."""
    path = f"{VENV / 'bin'}{os.pathsep}{base.get('PATH', os.defpath)}"
    settings = parse(SETTINGS.read_text(), home)
    places = {"MICROCLUSTER_HOME": str(home.root), "MICROCLUSTER_CACHE": str(home.cache), "PATH": path}
    return {**base, **places, **settings}


def with_account(home: Home) -> dict[str, str]:
    """The same with the account's variables, for `pulumi` and `fab`: nothing else that set-up starts needs them."""
    return child_environment(home) | kept()


def parse(text: str, home: Home) -> dict[str, str]:
    """The ``NAME=value`` lines of ``text`` with ``$MICROCLUSTER_HOME`` filled in."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return {name: Template(value).substitute(MICROCLUSTER_HOME=str(home.root)) for name, value in pairs}
