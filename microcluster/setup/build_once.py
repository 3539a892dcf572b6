"""Things that are built once and kept for every clone, whole or not at all."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from microcluster.setup import versions
from microcluster.setup.environment import PROJECT


def fingerprint(*wrappers: versions.Wrapper) -> str:
    """Twelve hex digits over all that decides what a build gives: versions, stamps and the modules' sums."""
    digest = hashlib.sha256(versions.PULUMI.encode())
    for wrapper in wrappers:
        digest.update(f"{wrapper.package} {wrapper.stamp}".encode())
        for name in ("go.mod", "go.sum"):
            digest.update((PROJECT / "engine" / wrapper.folder / name).read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def made_once(folder: Path) -> Iterator[Path | None]:
    """Give a scratch folder that becomes ``folder`` when its making succeeds; None when ``folder`` is there already."""
    if folder.exists():
        yield None
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        (made / "bin").mkdir(parents=True)
        yield made
        if not folder.exists():  # Another clone may have been quicker.
            made.rename(folder)
