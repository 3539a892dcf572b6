"""A user's folder of microcluster, and the owner mark of a key.

Only the standard library: setup runs before any package is installed.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

PRIVATE_DIR = 0o700
PATH_BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
FORBIDDEN_IN_PATHS = "$`\\\"'<>|;&*?{}"


@dataclass(frozen=True)
class Home:
    """The folder ``MICROCLUSTER_HOME``, and its cache, which homes may share (``MICROCLUSTER_CACHE``)."""

    root: Path
    cache: Path

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "Home":
        """Return the home that ``environment`` names, or the default one."""
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
    def receipts(self) -> Path:
        return self.root / "receipts"

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
        """Create its folders, readable by the owner only."""
        for folder in (self.root, self.state, self.keys, self.locks, self.root / "pulumi", self.cache, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
        self.root.chmod(PRIVATE_DIR)

    def expand(self, path: str) -> Path:
        """Return a path of a stack file, which may begin with ``~/`` or ``$MICROCLUSTER_HOME/``.

        No other variable is expanded: its value may be a key, and an error about a missing file would show it.
        """
        named = Template(path).safe_substitute(HOME=str(Path.home()), MICROCLUSTER_HOME=str(self.root))
        return Path(named).expanduser().absolute()


def owner_mark(public_key: str) -> str:
    """Return the first eight hex digits of SHA-256 of a public key's type and material."""
    return hashlib.sha256(" ".join(public_key.split()[:2]).encode()).hexdigest()[:8]


def problem_of_path(path: object) -> str | None:
    """Return why this is no path of a file in a stack file; the value is never repeated, since it may be a key."""
    begins = PATH_BEGINNING.match(path) if isinstance(path, str) else None
    if not isinstance(path, str) or not begins:
        return "is not the path of a file; begin with ~/, / or $MICROCLUSTER_HOME/, for example ~/.microcluster/ngc_key"
    rest = path[begins.end() :]
    if not rest.isprintable() or any(character in rest for character in FORBIDDEN_IN_PATHS) or ".." in Path(path).parts:
        return "has '..' or special characters in it; write the path out"
    return None if len(path) <= LONGEST_PATH else f"is longer than {LONGEST_PATH} characters"
