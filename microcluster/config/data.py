"""The user's finished data: the address of a tar, or a folder or tar on this computer, and their id."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from core.home import Home
from core.plain_text import shown
from microcluster.config.validators import problem_of_path
from microcluster.jobs.cluster_facts import SentFile

EXAMPLE = "https://example.com/wmt16.tar#sha256=<64 hex digits>, or ~/wmt16"
LONGEST = 1024
ID_DIGITS = 12
TAR = r"[A-Za-z0-9_.-]+\.(?:tar|tar\.gz|tgz|tar\.xz|txz)"
ADDRESS = re.compile(
    r"(?P<address>https://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?"
    rf"/(?:[A-Za-z0-9_.~%+,=-]+/)*{TAR})(?:#sha256=(?P<sha256>[0-9a-f]{{64}}))?"
)


@dataclass(frozen=True)
class Data:
    """The source of finished data: ``address``, or ``path`` with its ``files`` after `find_files`."""

    address: str | None = None
    sha256: str | None = None
    path: Path | None = None
    is_tar: bool = True
    files: tuple[SentFile, ...] = ()

    @property
    def id(self) -> str:
        """A hash of the content where it is known, else of the address."""
        if self.files and not self.is_tar:
            text = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
            return hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]
        known = self.sha256 or (self.files[0].sha256 if self.files else None)
        return known[:ID_DIGITS] if known else hashlib.sha256(str(self.address).encode()).hexdigest()[:ID_DIGITS]


def data_of(value: str) -> Data:
    """Return the source of the data; a path is not opened."""
    match = ADDRESS.fullmatch(value)
    if match:
        return Data(match["address"], match["sha256"])
    return Data(path=Home.of().expand(value))


def data(value: str) -> str:
    """Accept the https address of a tar, or the path of a tar or folder on this computer."""
    problem = _problem(value)
    if problem:
        raise ValueError(problem)
    return value


def _problem(value: str) -> str | None:
    """Return the problem, without repeating a possible secret."""
    scheme, colon, rest = value.partition("://")
    if not colon:
        problem = problem_of_path(value)
        return f"{problem}; or the https address of a tar, {EXAMPLE}" if problem else None
    authority = re.split(r"[/?#]", rest)[0]
    if "@" in authority or "?" in rest:
        return (
            "holds a user name, a key or a query; a stack file must not hold secrets. Use an address that needs none, "
            f"{EXAMPLE}"
        )
    if scheme.lower() != "https":
        return f"{shown(scheme)} is not https; other protocols do not protect the data against changes; {EXAMPLE}"
    if len(value) > LONGEST or ".." in rest or not ADDRESS.fullmatch(value):
        return f"{shown(value)} is not the https address of a tar (.tar, .tar.gz or .tar.xz); {EXAMPLE}"
    return None
