"""Put images of the host's Docker into an account's registry, the way NVIDIA fills NGC.

They go straight into the files of docker-registry (distribution's registry/storage/paths.go names them) and their layers stay as
they are: a push over loopback spends half a minute on compressing a gigabyte that the next machine unpacks again.
"""

import errno
import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
from docker.models.images import Image
from filelock import FileLock

from emulator.machines.host_tools import connect, docker_doing
from emulator.machines.registry import storage_of
from emulator.machines.spec import MachineError

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar"
PIECE = 1 << 20


def publish(state: Path, image: str, name: str, cache: Path | None = None) -> bool:
    """Publish ``image`` as ``name``, which may have a tag; False when the registry already has it.

    Args:
        cache: where what ``docker save`` gives is kept for other names and accounts; without it, beside the registry.
    """
    repository, _, tag = name.partition(":")
    tag = tag or "latest"
    folder = storage_of(state).parent
    storage_of(state).mkdir(mode=0o700, parents=True, exist_ok=True)
    client = connect()
    with docker_doing(f"Publishing {image} as {repository}:{tag}"), FileLock(folder / "publishing.lock"):
        local_image = client.images.get(image)
        record = folder / "published" / repository / tag
        if record.exists() and record.read_text() == local_image.id:
            return False
        with _saved(client, local_image, cache or folder / "saved") as saved:
            Repository(storage_of(state) / "docker/registry/v2", repository).take(saved, tag)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(local_image.id)
    return True


@dataclass(frozen=True)
class Repository:
    """One name of a registry, in the registry's files below ``root``."""

    root: Path
    name: str

    def take(self, saved: Path, tag: str) -> None:
        """Take an image in from the unpacked output of ``docker save``, which stays as it is."""
        [image] = json.loads((saved / "manifest.json").read_text())
        parts = [
            self._part(saved / path, media_type)
            for path, media_type in [(image["Config"], CONFIG), *((layer, LAYER) for layer in image["Layers"])]
        ]
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}
        file = self.root / "manifest"
        file.write_text(json.dumps(manifest))
        digest, tags = self._blob(file), f"_manifests/tags/{tag}"
        file.unlink()
        self._link("_manifests/revisions", digest)
        self._link(f"{tags}/index", digest)
        self._write(f"{tags}/current/link", digest)

    def _part(self, file: Path, media_type: str) -> dict[str, Any]:
        digest = self._blob(file)
        self._link("_layers", digest)
        return {"mediaType": media_type, "size": file.stat().st_size, "digest": digest}

    def _blob(self, file: Path) -> str:
        with file.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        data = self.root / "blobs/sha256" / digest[:2] / digest / "data"
        if not data.exists():
            data.parent.mkdir(parents=True, exist_ok=True)
            _link_or_copy(file.resolve(), data)  # Equal layers are links to one another.
        return f"sha256:{digest}"

    def _link(self, folder: str, digest: str) -> None:
        self._write(f"{folder}/{digest.replace(':', '/')}/link", digest)

    def _write(self, path: str, digest: str) -> None:
        file = self.root / "repositories" / self.name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(digest)


@contextmanager
def _saved(client: docker.DockerClient, image: Image, cache: Path) -> Iterator[Path]:
    """Give the folder with what ``docker save`` gives of an image; the cache keeps it for as long as Docker has the image."""
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    with FileLock(cache / "lock"):
        known = {each.removeprefix("sha256:") for each in client.api.images(quiet=True, all=True)}
        for folder in cache.iterdir():
            if folder.is_dir() and folder.name not in known:
                shutil.rmtree(folder)  # Also one that a killed publication left behind.
        saved = cache / image.id.removeprefix("sha256:")
        if not saved.exists():
            _unpack(image, cache / "part")
            (cache / "part").rename(saved)
        yield saved


def _unpack(image: Image, folder: Path) -> None:
    pieces = image.save()
    stream = SimpleNamespace(read=lambda _: next(pieces, b""))
    try:
        with tarfile.open(fileobj=stream, mode="r|", bufsize=PIECE) as saved:
            saved.extractall(folder, filter="data")
    except (OSError, tarfile.TarError) as error:
        names = " ".join(image.tags)
        raise MachineError(f"Publishing {names}: unpacking it into {folder} failed: {error}. Run it again.") from error


def _link_or_copy(file: Path, new: Path) -> None:
    """Have a file in a second place too, on another disk as a copy that is whole or absent."""
    try:
        new.hardlink_to(file)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        part = new.with_name("part")
        shutil.copyfile(file, part)
        part.rename(new)
