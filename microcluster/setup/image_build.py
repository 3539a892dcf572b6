"""Builds one image: a Debian base from packages, or a Dockerfile on top of it. The output goes to a log."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import docker
import docker.errors

from core.plain_text import duration
from microcluster.setup.image_inputs import FOLDER, HOST_FOLDER, Image, write_context
from microcluster.setup.package_sources import apt_options, apt_sources, builder_files, proxies
from microcluster.setup.process import stop_group

BASE_LIMIT_S = 1800
NO_HOST_KEYS = 'rm -f "$1"/etc/ssh/ssh_host_*'
"""Every machine makes its own."""

Progress = Callable[[str], None]
"""Called with the current step, for example "step 3/12"."""


class ImageError(Exception):
    """An image cannot be built."""


def build_base(client: docker.DockerClient, image: Image, log: Path) -> None:
    """Make a minimal Debian from the host's package sources and import it as ``image.tag``."""
    with tempfile.TemporaryDirectory(dir=log.parent) as scratch, log.open("wb") as output:
        archive = Path(scratch) / "base.tar"
        command = mmdebstrap_command(image.folder, archive, Path(scratch) / "sources.list")
        _run(command, output)
        changes = [f'LABEL {name}="{value}"' for name, value in image.labels.items()]
        with archive.open("rb") as data:
            repository, name = image.tag.split(":")
            client.api.import_image_from_data(data, repository=repository, tag=name, changes=changes)


def mmdebstrap_command(folder: Path, archive: Path, sources_list: Path) -> tuple[str, ...]:
    """Return the argv that writes the Debian described in ``folder`` to ``archive``."""
    suite, usual = ((of / "suite").read_text().strip() for of in (folder, FOLDER / "base"))
    packages = ",".join((folder / "packages").read_text().split())
    dpkg = [f"--dpkgopt={line}" for line in (folder / "dpkg.cfg").read_text().splitlines()]
    apt = [f"--aptopt={option}" for option in apt_options()]
    # The host's mirrors have other releases of Debian too.
    sources = apt_sources(suite) or [line.replace(f" {usual}", f" {suite}") for line in apt_sources(usual)]
    sources_list.write_text("\n".join([*sources, ""]))
    named = [str(sources_list)] if sources else []  # By default mmdebstrap uses Debian's own.
    options = ("--variant=minbase", f"--include={packages}", *dpkg, *apt, f"--customize-hook={NO_HOST_KEYS}")
    return ("mmdebstrap", *options, suite, str(archive), *named)


def _run(command: Sequence[str], output: IO[bytes], limit_s: float = BASE_LIMIT_S) -> None:
    streams = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
    try:
        process = subprocess.Popen(command, process_group=0, **streams)
    except FileNotFoundError as missing:
        raise ImageError(
            f"{command[0]} is not installed; run `make setup`, or `apt-get install {command[0]}`"
        ) from missing
    try:
        exit_code = process.wait(limit_s)
    except BaseException as stopped:
        stop_group(process)  # It must unmount and remove a tree.
        if isinstance(stopped, subprocess.TimeoutExpired):
            raise ImageError(f"{command[0]} was stopped after {duration(limit_s)}") from stopped
        raise
    if exit_code:
        raise ImageError(f"{command[0]} ended with exit code {exit_code}")


def build_dockerfile(client: docker.DockerClient, image: Image, log: Path, progress: Progress) -> None:
    """Build the image's Dockerfile on its parents as ``image.tag`` with Docker's classic builder."""
    if not (image.folder / "Dockerfile").is_file():
        raise ImageError(f"{image.folder / 'Dockerfile'} is missing")
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
        _follow(lines, output.write, progress)


def _parents(image: Image) -> dict[str, str]:
    """Return the images that a Dockerfile names: BASE, on which it stands, and the others in capital letters."""
    base, *others = image.parents
    return {"BASE": base.tag, **{other.name.upper().replace("-", "_"): other.tag for other in others}}


def _follow(lines: Iterable[Mapping[str, Any]], write: Callable[[str], object], progress: Progress) -> None:
    step = "the build"
    for line in lines:
        text = str(line.get("stream") or line.get("error") or "")
        write(text)
        if text.startswith("Step "):
            step = text.split(" : ", maxsplit=1)[0].lower()
            progress(step)
        if detail := line.get("errorDetail"):
            raise ImageError(
                f"{step} ended with exit code {detail['code']}" if "code" in detail else str(line["error"])
            )
