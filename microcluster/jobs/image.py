"""The image that the ranks run in: the Dockerfile that is built on the stack's base image, its name, and who hands it to whom."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TypeVar

from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.rendering import render

TEMPLATE = "Dockerfile"
REPOSITORY = "microcluster/openseq2seq"
"""What every built image is called on the hosts, whatever it was built on."""
COMMIT = "8681d381"
"""The last commit of OpenSeq2Seq's master, of 2020-09-09; its source is pinned to it."""
FRAMEWORK = f"OpenSeq2Seq {COMMIT}"
STAND_IN = "stand-in 0.1.0"
LOCAL_REPOSITORY = "microcluster/training"
"""What the image that is built from images/training is offered as, in whatever registry."""
TRAINER_FILE = "cache/images/trainer"
"""Below the home: what the local image of `make images` can train with beside the stand-in; absent where there is nothing."""
TRAINER = re.compile(r"OpenSeq2Seq (?:[0-9a-f]{8}|of unknown commit, files [0-9a-f]{12})")
PROGRAM_FOLDER = "/opt/OpenSeq2Seq"
LOCAL_PROGRAM_FOLDER, STAND_IN_FOLDER = "/opt/microcluster/openseq2seq", "/opt/microcluster/stand-in"
"""The local image holds both trainers side by side."""
RECIPE_LABEL = "microcluster.recipe"
"""Of what the image was made: :func:`recipe`."""
HASH_DIGITS = 12
LINES_THAT_MATTER = 12
BUILDERS_OWN_LINE = re.compile(
    r"\s*(--->|Removing intermediate container|Successfully |Sending build context|DEPRECATED)"
)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""The builder paints what a step writes to its standard error."""
STEP = re.compile(r"Step \d+/\d+ : ")

T = TypeVar("T")


def framework(container: Container) -> str:
    """Return name and version of what trains in the container."""
    return (container.trainer or STAND_IN) if _is_local(container) else FRAMEWORK


def program_folder(container: Container) -> str:
    """Return the folder of the ``run.py`` that trains."""
    if not _is_local(container):
        return PROGRAM_FOLDER
    return LOCAL_PROGRAM_FOLDER if container.trainer else STAND_IN_FOLDER


def _is_local(container: Container) -> bool:
    return container.image.partition("/")[2].partition("@")[0].partition(":")[0] == LOCAL_REPOSITORY


def dockerfile(container: Container) -> str:
    """Return the Dockerfile on the container's base image; the local one holds every package already."""
    bare = not _is_local(container)
    return render(TEMPLATE, base=container.image, trainer=framework(container), commit=COMMIT, bare=bare)


def tag(container: Container) -> str:
    """Return the name of the built image, another one for every Dockerfile."""
    digest = hashlib.sha256(dockerfile(container).encode()).hexdigest()
    return f"{REPOSITORY}:{digest[:HASH_DIGITS]}"


def recipe(text: str, base_id: str) -> str:
    """Return what changes with the Dockerfile and with the base image behind its reference, which may move."""
    return hashlib.sha256(f"{base_id}\n{text}".encode()).hexdigest()


def rounds(holders: Sequence[T], lacking: Sequence[T]) -> list[list[tuple[T, T]]]:
    """Return who hands the image to whom, round after round.

    Whoever has it passes it on, so each sends one stream at a time over its whole port, and n hosts need log2(n) rounds.
    """
    have, todo, plan = list(holders), list(lacking), []
    while todo:
        pairs = list(zip(have, todo, strict=False))
        plan.append(pairs)
        have += [target for _, target in pairs]
        todo = todo[len(pairs) :]
    return plan


def why_it_failed(output: str) -> str:
    """Return the lines of a failed build that matter: the step it was at, and the last that this step printed."""
    plain = COLOUR.sub("", output).splitlines()
    lines = [line.rstrip() for line in plain if line.strip() and not BUILDERS_OWN_LINE.match(line)]
    steps = [number for number, line in enumerate(lines) if STEP.match(line)]
    of_step = lines[steps[-1] :] if steps else lines
    kept = of_step if len(of_step) <= LINES_THAT_MATTER else [of_step[0], *of_step[1 - LINES_THAT_MATTER :]]
    return "\n".join(kept)
