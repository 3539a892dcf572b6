"""Images of the emulated accounts' machines and of the training; builds those that are missing."""

import os
from collections.abc import Sequence
from pathlib import Path

import docker
import docker.errors
import requests.exceptions

from microcluster.core.files import locked
from microcluster.core.home import Home
from microcluster.core.plain_text import duration, say
from microcluster.jobs.image import TRAINER_FILE
from microcluster.jobs.kinds import KINDS, kind_of
from microcluster.setup.errors import CommandFailed, UserMistake
from microcluster.setup.image_build import Image, build_base, build_dockerfile
from microcluster.setup.progress import shown
from microcluster.setup.trainer_source import Source, find, inputs

BASE, TRAINING, TORCH, MXNET = "base", "training", "torch", "mxnet"
IMAGES = ("machine", TRAINING)  # of the local stack
PAPERSPACE = ("ml-in-a-box", "drive")  # of the emulated Paperspace account
QUEUE = ("queue",)  # of the emulated site with a queue
ALL = (*IMAGES, TORCH, MXNET, *PAPERSPACE, *QUEUE)
PARENTS = {
    BASE: (),
    "machine-base": (),
    "machine": ("machine-base",),
    "torch-base": (),
    TORCH: ("torch-base", TRAINING),
    "ml-in-a-box": ("torch-base", "machine", TRAINING),
    "queue": (MXNET, "machine"),
}
"""Images that an image builds on or copies from; every other one builds on the base."""
USUAL_S = {
    **{"base": 30, "machine-base": 60, "machine": 10, "training": 300, "torch-base": 60, "torch": 10},
    **{"ml-in-a-box": 60, "drive": 30, "queue": 90, "mxnet": 90},
}
API_TIMEOUT_S = 1800  # One step of a build may take long without output.
FAILURES = (CommandFailed, docker.errors.DockerException, requests.exceptions.RequestException)


def ensure(names: tuple[str, ...], home: Home) -> None:
    """Build the missing ones of the images ``names`` and of those below them, and tag each as ``:current``."""
    if unknown := set(names) - set(ALL):
        raise UserMistake(f"No such image: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}.")
    client = docker.from_env(timeout=API_TIMEOUT_S)
    busy = "    another build of the images is running; waiting for it"
    with locked(home.locks / "images.lock", lambda _: say(busy)):
        needed_images = ancestry(names)
        sources = _sources(home) if TRAINING in needed_images else []
        images: dict[str, Image] = {}
        for name, parents in needed_images.items():
            added = inputs(sources) if name == TRAINING else {}
            image = images[name] = Image(name, tuple(images[parent] for parent in parents), added)
            if client.images.list(name=image.tag):
                say(f"    image {image.name} is there")
            else:
                _build(client, image, home)
            client.images.get(image.tag).tag(f"microcluster/{image.name}:current")
        if TRAINING in needed_images:
            _write_trainers(home.root / TRAINER_FILE, sources)


def ancestry(names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the images ``names`` and all below them, each after its parents, with its parents."""
    ancestors: dict[str, tuple[str, ...]] = {}
    for name in names:
        parents = PARENTS.get(name, (BASE,))
        ancestors |= ancestry(parents) | {name: parents}
    return ancestors


def _sources(home: Home) -> list[Source]:
    pinned = {name: source for name in KINDS if (source := kind_of(name).local_source)}
    kept = home.root / "cache"
    found = [find(one, os.environ, kept / kind, lambda line: say(f"    {line}")) for kind, one in pinned.items()]
    sources = [source for source in found if source]
    for source in sources:
        say(f"    image training holds {source.name}")
    return sources


def _write_trainers(file: Path, sources: Sequence[Source]) -> None:
    """Record the trainers in the image; a preview reads the record."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{source.name}\n" for source in sources), encoding="utf-8")


def _build(client: docker.DockerClient, image: Image, home: Home) -> None:
    log = home.root / "cache" / "images" / f"{image.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with shown(f"building image {image.name}", duration(USUAL_S[image.name])):
        try:
            if image.parents:
                build_dockerfile(client, image, log)
            else:
                build_base(client, image, log)
        except FAILURES as failed:
            reason = " ".join(str(failed).split()).rstrip(".")
            raise CommandFailed(f"Building image {image.name}: {reason}. The log is {log}.") from failed
