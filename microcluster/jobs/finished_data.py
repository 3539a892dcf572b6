"""Data of a job: their plan, and finished data of the user, which are the address of a tar, or a folder or tar of this computer."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictStr

from microcluster.core.home import Home, problem_of_path
from microcluster.core.plain_text import shown
from microcluster.jobs.folder_tree import FolderTree

EXAMPLE = "https://example.com/wmt16.tar#sha256=<64 hex digits>, or ~/wmt16"
LONGEST = 1024
LARGEST_WHOLE_BYTES = 100 * 10**9  # Comparing so many with their sums takes ten minutes at each start.
ID_DIGITS = 12
TAR = r"[A-Za-z0-9_.-]+\.(?:tar|tar\.gz|tgz|tar\.xz|txz)"
ADDRESS = re.compile(
    r"(?P<address>https://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    rf"/(?:[A-Za-z0-9_.~%+,=-]+/)*{TAR})(?:#sha256=(?P<sha256>[0-9a-f]{{64}}))?"
)


@dataclass(frozen=True)
class DataPlan:
    """Data of a job.

    Attributes:
        id: hash of the files that were brought, or name of the recipe that makes them.
        folder: folder on every host, below the mount point.
        files: names of the files that a job reads; ``optional`` ones may be missing.
        recipe: input of agent/data/staging.py that makes the files if the stack file brings none.
        largest_bytes: limit of a tar with finished files.
        pairs: files of which each line has to have its partner.
        vocabulary: a file and the number of its lines; None for a program that makes its own of the texts.
        needed: files without which a trained model cannot be used.
        words: a file and how many different words it has to hold, the end of a line one of them.
        content: folder of data that are taken whole, with their folders; None if ``files`` are all.
    """

    id: str
    folder: str
    files: tuple[str, ...]
    recipe: Mapping[str, Any]
    largest_bytes: int
    optional: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    vocabulary: tuple[str, int] | None = None
    needed: tuple[str, ...] = ()
    words: tuple[str, int] | None = None
    content: str | None = None


@dataclass(frozen=True)
class SentFile:
    """One file of the operator's computer that the launcher gets: its name there, its length in bytes and its SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Data:
    """Finished data that are brought: a tar behind an https ``address``, or ``files`` in or at ``path`` of the operator's computer.

    ``sha256`` is the address's, where it is known beforehand; ``is_tar`` says that the one file is a tar. A folder that is taken whole
    has a ``tree`` in place of files, whose id is the hash.
    """

    address: str | None = None
    sha256: str | None = None
    path: str | None = None
    is_tar: bool = True
    files: tuple[SentFile, ...] = ()
    tree: FolderTree | None = None

    @property
    def tar_sha256(self) -> str | None:
        """The hash of the tar, where it is known beforehand."""
        return self.files[0].sha256 if self.files else self.sha256

    @property
    def id(self) -> str:
        """A hash of the content where it is known, else of the address."""
        text = str(self.address)
        if not self.is_tar:
            text = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
        elif self.tar_sha256:
            return self.tar_sha256[:ID_DIGITS]
        return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]


def data_of(value: str) -> Data:
    """Return the source of the data; a path is not opened."""
    match = ADDRESS.fullmatch(value)
    if match:
        return Data(match["address"], match["sha256"])
    return Data(path=str(Home.of().expand(value)))


def _check(value: str) -> str:
    """Accept the https address of a tar, or a path on this computer; a possible secret is not repeated."""
    scheme, colon, rest = value.partition("://")
    if not colon:
        problem = problem_of_path(value)
        if problem:
            raise ValueError(f"{problem}; or the https address of a tar, {EXAMPLE}")
        return value
    if "@" in re.split(r"[/?#]", rest)[0] or "?" in rest:
        raise ValueError(
            "holds a user name, a key or a query; a stack file must not hold secrets. Use an address that needs none, "
            f"{EXAMPLE}"
        )
    if scheme.lower() != "https":
        raise ValueError(
            f"{shown(scheme)} is not https; other protocols do not protect the data against changes; {EXAMPLE}"
        )
    if len(value) > LONGEST or ".." in rest or not ADDRESS.fullmatch(value):
        raise ValueError(f"{shown(value)} is not the https address of a tar (.tar, .tar.gz or .tar.xz); {EXAMPLE}")
    return value


FinishedData = Annotated[
    StrictStr,
    AfterValidator(_check),
    Field(description="https address of a tar (`#sha256=HEX` pins it), or a folder or tar of this computer"),
]
