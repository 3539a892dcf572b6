"""Build the local stack's images from Debian and Python packages: ``python -m microcluster.setup.images [machine training torch mxnet]``."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import docker
import docker.errors
import requests.exceptions
from filelock import FileLock, Timeout

from core.home import Home
from core.plain_text import duration, say
from microcluster.jobs.image import TRAINER_FILE
from microcluster.jobs.kind import KINDS, kind_of
from microcluster.setup.image_build import ImageError, build_base, build_dockerfile
from microcluster.setup.image_inputs import Image
from microcluster.setup.package_sources import HostSettingsError
from microcluster.setup.trainer_source import Source, SourceError, find, inputs

BASE, TRAINING, TORCH, MXNET = "base", "training", "torch", "mxnet"
IMAGES = ("machine", TRAINING)  # of the local stack
PAPERSPACE = ("ml-in-a-box", "drive")  # of the emulated Paperspace account
QUEUE = ("queue",)  # of the emulated site with a queue
ALL = (*IMAGES, TORCH, MXNET, *PAPERSPACE, *QUEUE)
PARENTS = {
    BASE: (),
    "torch-base": (),
    TORCH: ("torch-base", TRAINING),
    "ml-in-a-box": ("torch-base", "machine", TRAINING),
    "queue": (MXNET, "machine"),
}
"""What an image stands on, and what it copies from; every other one stands on the base."""
USUAL_S = {
    **{"base": 30, "machine": 60, "training": 300, "torch-base": 60, "torch": 10, "ml-in-a-box": 60, "drive": 30},
    **{"queue": 90, "mxnet": 90},
}
REPEAT_S = 30  # Between two progress lines.
API_TIMEOUT_S = 1800  # One step of a build may take long without output.
FAILURES = (ImageError, HostSettingsError, docker.errors.DockerException, requests.exceptions.RequestException)


def ensure(names: tuple[str, ...], home: Path, say: Callable[[str], None]) -> None:
    """Build the missing ones of the images ``names`` and of those below them, and tag each as ``:current``."""
    client = _docker()
    with _alone(home, say):
        wanted = ancestry(names)
        sources = _sources(home, say) if TRAINING in wanted else []
        made: dict[str, Image] = {}
        for name, parents in wanted.items():
            added = inputs(sources) if name == TRAINING else {}
            image = made[name] = Image(name, tuple(made[parent] for parent in parents), added)
            if _missing(client, image.tag):
                _build(client, image, home, say)
            else:
                say(f"    image {image.name} is there")
            client.images.get(image.tag).tag(image.current)
        if TRAINING in wanted:
            _write_trainers(home / TRAINER_FILE, sources)


def ancestry(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the images ``names`` and all below them, each after its parents, with its parents."""
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        parents = PARENTS.get(name, (BASE,))
        found |= ancestry(parents) | {name: parents}
    return found


def _sources(home: Path, say: Callable[[str], None]) -> list[Source]:
    pinned = {name: source for name in KINDS if (source := kind_of(name).local_source)}
    found = [
        find(one, os.environ, home / "cache" / kind, lambda line: say(f"    {line}")) for kind, one in pinned.items()
    ]
    sources = [source for source in found if source]
    for source in sources:
        say(f"    image training holds {source.name}")
    return sources


def _write_trainers(file: Path, sources: Sequence[Source]) -> None:
    """Record the trainers in the image; a preview reads the record."""
    if not sources:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{source.name}\n" for source in sources), encoding="utf-8")


def _docker() -> docker.DockerClient:
    try:
        client = docker.from_env(timeout=API_TIMEOUT_S)
        client.ping()
    except (docker.errors.DockerException, requests.exceptions.RequestException) as silent:
        raise ImageError(
            "Building the images: no Docker daemon answers. Run `make images`, which starts it, or start Docker."
        ) from silent
    return client


@contextmanager
def _alone(home: Path, say: Callable[[str], None]) -> Iterator[None]:
    lock = FileLock(home / "locks" / "images.lock")
    Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say("    another build of the images is running; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _missing(client: docker.DockerClient, tag: str) -> bool:
    try:
        client.images.get(tag)
    except docker.errors.ImageNotFound:
        return True
    return False


def _build(client: docker.DockerClient, image: Image, home: Path, say: Callable[[str], None]) -> None:
    log = home / "cache" / "images" / f"{image.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with _Narrator(image.name, say) as narrator:
        try:
            if image.parents:
                build_dockerfile(client, image, log, narrator.at)
            else:
                build_base(client, image, log)
        except FAILURES as failed:
            raise ImageError(f"Building image {image.name}: {_one_line(failed)}. The log is {log}.") from failed


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


class _Narrator:
    """Prints the progress of a build and its usual time."""

    def __init__(self, name: str, say: Callable[[str], None]) -> None:
        self._name, self._say, self._step = name, say, ""
        self._start, self._done = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def at(self, step: str) -> None:
        self._step = f", {step}"

    def __enter__(self) -> "_Narrator":
        self._say(f"    building image {self._name} (usually {duration(USUAL_S[self._name])})")
        self._thread.start()
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if failed is None:
            self._say(f"    building image {self._name}: done after {self._elapsed}")

    @property
    def _elapsed(self) -> str:
        return duration(time.monotonic() - self._start)

    def _repeat(self) -> None:
        while not self._done.wait(REPEAT_S):
            usual = duration(USUAL_S[self._name])
            self._say(f"    building image {self._name}{self._step}: {self._elapsed} so far (usually {usual})")


def main(arguments: list[str] | None = None) -> int:
    """Build the named images, or those of the local stack."""
    parser = argparse.ArgumentParser(prog="python -m microcluster.setup.images", description=__doc__)
    parser.add_argument(
        "images",
        nargs="*",
        metavar="image",
        help="machine, training; torch for PyTorch; mxnet for MXNet; ml-in-a-box and drive for the emulated Paperspace account; "
        "queue for the emulated site with a queue; without a name the first two",
    )
    names = tuple(parser.parse_args(arguments).images) or IMAGES
    if unknown := set(names) - set(ALL):
        parser.error(f"no such image: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    home = Home.of().root
    try:
        ensure(names, home, say)
    except (ImageError, SourceError) as error:
        say(str(error), sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("Stopped. Finished parts are kept; repeat the command to continue.", sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
