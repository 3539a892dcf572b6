"""The inputs of an image: the files of its folder, their hash, and the build context."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

FOLDER = Path(__file__).resolve().parents[2] / "images"
HASH_DIGITS = 12
HOST_FOLDER = ".host"  # Settings of the building machine; only builder stages may copy it.
NOT_INPUTS = ("__pycache__", ".pytest_cache", ".ruff_cache")


@dataclass(frozen=True)
class Image:
    """One image, the images that it takes from, and files from elsewhere by their name in the context.

    Attributes:
        parents: the image that it stands on, then those of which files are copied; none for one that is made of Debian packages.
    """

    name: str
    parents: "tuple[Image, ...]" = ()
    added: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @cached_property
    def hash(self) -> str:
        """A hash over all inputs of the image and its parents."""
        return input_hash(self.folder, "".join(parent.hash for parent in self.parents), self.added)

    @property
    def tag(self) -> str:
        return f"microcluster/{self.name}:{self.hash}"

    @property
    def current(self) -> str:
        return f"microcluster/{self.name}:current"

    @property
    def labels(self) -> dict[str, str]:
        return {"microcluster.image": self.name, "microcluster.hash": self.hash}


def input_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of ``folder`` that go into the image, sorted."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(path for path in files if not set(NOT_INPUTS) & set(path.relative_to(folder).parts)))


def input_hash(folder: Path, parents: str, added: Mapping[str, bytes] | None = None) -> str:
    """Hash names, modes and contents below ``folder``, the parents' hashes and the added files."""
    digest = hashlib.sha256(parents.encode())
    for path in input_files(folder):
        executable = bool(path.stat().st_mode & 0o100)
        digest.update(f"\0{path.relative_to(folder)}\0{executable}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    for name, content in sorted((added or {}).items()):
        digest.update(f"\0{name}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()[:HASH_DIGITS]


def write_context(folder: Path, added: Mapping[str, bytes], target: IO[bytes]) -> None:
    """Write the build context as a tar; equal inputs give equal bytes, for Docker's layer cache."""
    with tarfile.open(fileobj=target, mode="w") as archive:
        for path in input_files(folder):
            mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            _add(archive, str(path.relative_to(folder)), path.read_bytes(), mode)
        for name, content in sorted(added.items()):
            _add(archive, name, content, 0o644)


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
