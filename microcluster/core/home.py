"""A user's folder of microcluster, the owner mark of a stack, and how everything that it rents bears it.

Only the standard library: setup runs before any package is installed.
"""

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from string import Template
from typing import Any

PRIVATE_DIR = 0o700
PATH_BEGINNING = re.compile(r"(~|\$(MICROCLUSTER_HOME|HOME)|\$\{(MICROCLUSTER_HOME|HOME)\})?/")
LONGEST_PATH = 1024
FORBIDDEN_IN_PATHS = "$`\\\"'<>|;&*?{}"
ZONE = "microcluster"
PUBLIC_KEY, MARK_FILE = "id_ed25519.pub", "mark"
STACK_FILE = "stack"
"""File with the label of a renamed stack's key folder and its new stack; a copied folder has another label."""
UNOWNED = "0" * 8
"""Owner mark of resources that belong to no stack, and of those that are only priced."""
_OWNER = r"(?P<stack>[A-Za-z0-9_.-]+)-(?P<mark>[0-9a-f]{8})"


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
    def digests(self) -> Path:
        """The folder of the digests of base images, each as it was at its first pull."""
        return self.root / "digests"

    @property
    def guarded(self) -> Path:
        """The folder of the owners that another computer orders for and this one guards, each in a file named after its stack."""
        return self.root / "guarded"

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

    def folder_of(self, stack: str) -> Path:
        """Return the key folder of a stack, or where that of a new one is to be: no two stacks share one.

        Its name is the stack's label, which all that the stack rents bears: Pulumi may give the stack another name.
        """
        candidates = (
            path.parent for path in sorted(self.keys.glob(f"*/{STACK_FILE}")) if stack_of(path.parent) == stack
        )
        labels = chain([stack], (f"{stack}-{number}" for number in count(2)))
        free = (self.keys / label for label in labels if not _is_taken(self.keys / label, stack))
        return next(chain(candidates, free))

    def label_of(self, stack: str) -> str:
        """Return the label of a stack."""
        return self.folder_of(stack).name

    def owner_of(self, stack: str, mark: str) -> "Owner":
        """Return the owner with a mark, also where nobody has written down yet that the stack was renamed."""
        folder = self.folder_of(stack)
        same = [] if folder.exists() else [each for each in self.keys.glob("*") if bears(each, mark)]
        return Owner((same[0] if len(same) == 1 else folder).name, mark)

    def make(self) -> None:
        """Create the home's folders, readable by the owner only."""
        for folder in (self.root, self.state, self.keys, self.locks, self.root / "pulumi", self.cache, self.logs):
            folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_DIR)
        self.root.chmod(PRIVATE_DIR)

    def expand(self, path: str) -> Path:
        """Return a path of a stack file, which may begin with ``~/`` or ``$MICROCLUSTER_HOME/``.

        No other variable is expanded: its value may be a key, and an error about a missing file would show it.
        """
        named = Template(path).safe_substitute(HOME=str(Path.home()), MICROCLUSTER_HOME=str(self.root))
        return Path(named).expanduser().absolute()


class KeysError(Exception):
    """A key or the mark of a stack is damaged; the message is a full sentence with what to do next."""


def mark_of(folder: Path) -> str:
    """Return the mark of the stack with this folder of keys; before it had a file, it followed from the stack's first key.

    Raises:
        FileNotFoundError: the stack has no key.
        KeysError: the file with the mark is damaged.
    """
    path = folder / MARK_FILE
    if not path.exists():
        return owner_mark((folder / PUBLIC_KEY).read_text())
    mark = path.read_text(errors="replace").strip()
    if not re.fullmatch("[0-9a-f]{8}", mark):
        raise KeysError(
            f"Reading the mark of stack {folder.name} in {path}: it is not eight hex digits. What the stack has rented is found by its "
            "mark only. Restore the file from a copy, or write into it the digits behind the stack's name in a machine's domain."
        )
    return mark


def bears(folder: Path, mark: str) -> bool:
    """Return whether a folder of keys has this mark."""
    try:
        return mark_of(folder) == mark
    except (OSError, KeysError):
        return False


def stack_of(folder: Path) -> str:
    """Return the name of the stack that has a folder of keys: the folder's own, until the stack is renamed."""
    file = folder / STACK_FILE
    words = file.read_text(errors="replace").split() if file.is_file() else []
    return words[1] if len(words) == 2 and words[0] == folder.name else folder.name


def _is_taken(folder: Path, stack: str) -> bool:
    return stack_of(folder) != stack and any(folder.glob("id_ed25519*"))


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


@dataclass(frozen=True)
class Owner:
    """The label of a stack and the mark that something carries."""

    stack: str
    """The label: the stack's name, until it is renamed."""
    mark: str

    def __str__(self) -> str:
        """Name both as they stand on what they own."""
        return f"{self.stack}-{self.mark}"

    @property
    def domain(self) -> str:
        """The domain of the stack's machines."""
        return f"{self}.{ZONE}"

    @property
    def notes(self) -> str:
        """The beginning of the notes of everything that is the stack's, and the label of its key."""
        return f"{ZONE} {self}"

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the stack's guests, for people who look through the account."""
        return (ZONE, f"mc-mark-{self.mark}", f"mc-stack-{self.stack}")


def owner_in_word(word: str) -> Owner | None:
    """Read an owner as it writes itself."""
    return _owner(re.fullmatch(_OWNER, word))


def owner_in_domain(domain: Any) -> Owner | None:
    """Read whose guest it is from its domain; None for everything that no stack of microcluster has ordered.

    The stack counts as well as the mark: a copied folder of keys gives two stacks one mark.
    """
    return _owner(re.fullmatch(rf"{_OWNER}\.{ZONE}", str(domain or "")))


def owner_in_notes(text: Any) -> Owner | None:
    """Read whose it is from the beginning of notes or of a description."""
    return _owner(re.match(rf"{ZONE} {_OWNER}(?![0-9A-Za-z-])", str(text or "")))


def _owner(found: re.Match[str] | None) -> Owner | None:
    return Owner(found["stack"], found["mark"]) if found else None
