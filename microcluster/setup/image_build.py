"""One image: its inputs with their hash, and how it is built, as a Debian from packages or by a Dockerfile on top of one."""

import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import docker
import docker.errors

from microcluster.setup.environment import PROJECT
from microcluster.setup.errors import CommandFailed
from microcluster.setup.package_sources import apt_options, apt_sources, builder_files, proxies, tool_output
from microcluster.setup.process import how_it_ended, start, wait

FOLDER = PROJECT / "images"
HASH_DIGITS = 12
HOST_FOLDER = ".host"  # Settings of the building machine; only builder stages may copy it.
NOT_INPUTS = ("__pycache__", ".pytest_cache", ".ruff_cache")
BASE_LIMIT_S = 1800
NO_HOST_KEYS = 'rm -f "$1"/etc/ssh/ssh_host_*'
"""Command that removes host keys from an image: every machine makes its own."""


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
    def labels(self) -> dict[str, str]:
        return {"microcluster.image": self.name, "microcluster.hash": self.hash}


def input_files(folder: Path) -> tuple[Path, ...]:
    """Return the files of ``folder`` that go into the image, sorted."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return tuple(sorted(path for path in files if not set(NOT_INPUTS) & set(path.relative_to(folder).parts)))


def _inputs(folder: Path, added: Mapping[str, bytes]) -> Iterator[tuple[str, bool, bytes]]:
    """Yield name in the context, whether it can be executed, and content of every input of an image, in their order."""
    for path in input_files(folder):
        yield str(path.relative_to(folder)), bool(path.stat().st_mode & 0o100), path.read_bytes()
    for name in sorted(added):
        yield name, False, added[name]


def input_hash(folder: Path, parents: str, added: Mapping[str, bytes]) -> str:
    """Hash names, modes and contents below ``folder``, the parents' hashes and the added files."""
    digest = hashlib.sha256(parents.encode())
    for name, executable, content in _inputs(folder, added):
        digest.update(f"\0{name}\0{executable}\0".encode())
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:HASH_DIGITS]


def write_context(folder: Path, added: Mapping[str, bytes], target: IO[bytes]) -> None:
    """Write the build context as a tar; equal inputs give equal bytes, for Docker's layer cache."""
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, executable, content in _inputs(folder, added):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if executable else 0o644
            archive.addfile(entry, io.BytesIO(content))


def build_base(client: docker.DockerClient, image: Image, log: Path) -> None:
    """Make a minimal Debian from the host's package sources and import it as ``image.tag``."""
    with tempfile.TemporaryDirectory(dir=log.parent) as scratch, log.open("wb") as output:
        archive = Path(scratch) / "base.tar"
        command = mmdebstrap_command(image.folder, archive, Path(scratch) / "sources.list")
        process = start(command, os.environ, stdout=output, stderr=subprocess.STDOUT)
        exit_code = wait(process, BASE_LIMIT_S)  # Whatever ends it lets it unmount and remove a tree.
        if exit_code:
            raise CommandFailed(f"{command[0]} failed ({how_it_ended(exit_code, BASE_LIMIT_S)})")
        changes = [f'LABEL {name}="{value}"' for name, value in image.labels.items()]
        with archive.open("rb") as data:
            repository, name = image.tag.split(":")
            client.api.import_image_from_data(data, repository=repository, tag=name, changes=changes)


def mmdebstrap_command(folder: Path, archive: Path, sources_list: Path) -> tuple[str, ...]:
    """Return the argv that writes the Debian described in ``folder`` to ``archive``."""
    suite = (folder / "suite").read_text().strip()
    sources = apt_sources(suite)
    if not sources:  # The host's mirrors have other releases of Debian too.
        usual = (FOLDER / "base" / "suite").read_text().strip()
        sources = [line.replace(f" {usual}", f" {suite}") for line in apt_sources(usual)]
    options = ["--variant=minbase", f"--include={','.join((folder / 'packages').read_text().split())}"]
    options += [f"--dpkgopt={line}" for line in (folder / "dpkg.cfg").read_text().splitlines()]
    options += [f"--aptopt={option}" for option in apt_options(tool_output(("apt-config", "dump")))]
    argv = ["mmdebstrap", *options, f"--customize-hook={NO_HOST_KEYS}", suite, str(archive)]
    if sources:  # By default mmdebstrap uses Debian's own.
        sources_list.write_text("".join(f"{line}\n" for line in sources))
        argv.append(str(sources_list))
    return tuple(argv)


def build_dockerfile(client: docker.DockerClient, image: Image, log: Path) -> None:
    """Build the image's Dockerfile on its parents as ``image.tag`` with Docker's classic builder."""
    with tempfile.TemporaryFile() as context, log.open("w", encoding="utf-8") as output:
        settings = {f"{HOST_FOLDER}/{name}": content for name, content in builder_files().items()}
        write_context(image.folder, {**image.added, **settings}, context)
        context.seek(0)
        lines = client.api.build(
            fileobj=context,
            custom_context=True,
            tag=image.tag,
            labels=image.labels,
            buildargs={**_parents(image), **proxies(os.environ)},
            network_mode="host",
            rm=True,
            forcerm=True,
            decode=True,
        )
        _follow(lines, output.write)


def _parents(image: Image) -> dict[str, str]:
    """Return the images that a Dockerfile names: BASE, on which it stands, and the others in capital letters."""
    base, *others = image.parents
    return {"BASE": base.tag, **{other.name.upper().replace("-", "_"): other.tag for other in others}}


def _follow(lines: Iterable[Mapping[str, Any]], write: Callable[[str], object]) -> None:
    step = "the build"
    for line in lines:
        text = str(line.get("stream") or line.get("error") or "")
        write(text)
        if text.startswith("Step "):
            step = text.split(" : ", maxsplit=1)[0].lower()
        if detail := line.get("errorDetail"):
            raise CommandFailed(
                f"{step} ended with exit code {detail['code']}" if "code" in detail else str(line["error"])
            )
