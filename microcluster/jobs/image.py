"""The image that the ranks run in: what its base is known to hold, of what it was made, and why a build failed."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microcluster.core.key_file import SETTING, KeyFileError, settings_in
from microcluster.jobs.job_section import Sections

EXAMPLE = "nvcr.io/nvidia/tensorflow:19.05-py3"
NGC = "nvcr.io"
KEY_FILE = "ngc_key"
"""The name of the files in which a key alone is the registry's; in any other it may be another service's."""
EMULATED_REGISTRY = "ngc.microcluster.internal"
"""The registry of an emulated account, whatever its port; a key alone in a file belongs to these two."""
LOCAL_REPOSITORY = "microcluster/training"
"""Repository name, in any registry, of the image that is built from images/training."""
OURS = "microcluster/"
PYTHONS = {"training": "3.11", "torch": "3.13", "mxnet": "3.11"}
"""Version of Debian's Python in each image of the folder images/. Each image has pip."""
NVIDIAS_IMAGE = "nvcr.io/nvidia/tensorflow"
PYTHON_3_5 = re.compile(r"18\.\d\d-py3|19\.0[1-5]-py3")
"""The tags of NVIDIA's image with this Python."""
TRAINER_FILE = "cache/images/trainer"
"""File below the home that lists the published trainers in the local image of `make images`; absent where there is none."""
LOCAL_PROGRAM_FOLDER = "/opt/microcluster/tensorflow_1"
"""Folder in the local image: sources of published trainers, and the scripts that run them on TensorFlow 2."""
RECIPE_LABEL = "microcluster.recipe"
"""Docker label that holds the :func:`recipe` of an image."""
LINES_THAT_MATTER = 12
BUILDERS_OWN_LINE = re.compile(
    r"\s*(--->|Removing intermediate container|Successfully |Sending build context|DEPRECATED)"
)
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""The builder paints what a step writes to its standard error."""
STEP = re.compile(r"Step \d+/\d+ : ")


def registry(image: str) -> str:
    """Return the registry of an image reference, with its port if it names one."""
    return image.partition("/")[0]


def takes_key_alone(image: str) -> bool:
    """Return whether a key with no word of whose it is may go to the registry of an image."""
    return registry(image) == NGC or registry(image).partition(":")[0] == EMULATED_REGISTRY


def registry_key(image: str, file: Path) -> str:
    """Return the key in a file for the registry of an image: no other registry gets it.

    Raises:
        KeyFileError: it is not read, or has none for this registry; the message says what to write.
    """
    host = registry(image)
    wanted = f"Write the lines '[{host}]' and '{SETTING} = KEY' (mode 0600) into it."
    found = settings_in(file, host, wanted, key_alone=file.name == KEY_FILE and takes_key_alone(image))
    if SETTING not in found:
        raise KeyFileError(f"it has none for {host}; a key alone counts in a file {KEY_FILE}, for {NGC}. {wanted}")
    return found[SETTING]


def repository(image: str) -> str:
    """Return the repository that an image reference names, without registry, tag and digest."""
    return image.partition("/")[2].partition("@")[0].partition(":")[0]


def named_image(sections: Sections) -> str:
    """Return the image that the sections of a stack file name; an empty text without a container."""
    container: Any = sections.get("container")
    return str(container.get("image")) if isinstance(container, Mapping) else ""


def is_local(image: str) -> bool:
    """Return whether a reference names the image that is built from images/training, in whatever registry."""
    return repository(image) == LOCAL_REPOSITORY


def local_name(image: str) -> str | None:
    """Return the folder of images/ from which the image of a reference is built on this computer, or None."""
    return repository(image).removeprefix(OURS) if is_ours(image) else None


def is_ours(image: str) -> bool:
    """Return whether a reference names an image of the folder images/, which has everything that a kind needs."""
    return repository(image).startswith(OURS)


def pythons(image: str) -> tuple[str, ...]:
    """Return the interpreters of an image that is known here; none of any other."""
    name, _, tag = image.partition(":")
    version = PYTHONS.get(local_name(image) or "")
    if name == NVIDIAS_IMAGE and PYTHON_3_5.fullmatch(tag):
        version = "3.5"
    return ("python", "python3", f"python{version}") if version else ()


def recipe(text: str, base_id: str) -> str:
    """Return what changes with the Dockerfile and with the base image behind its reference, which may move."""
    return hashlib.sha256(f"{base_id}\n{text}".encode()).hexdigest()


def why_it_failed(output: str) -> str:
    """Return the lines of a failed build that matter: the step it was at, and the last that this step printed."""
    plain = COLOUR.sub("", output).splitlines()
    lines = [line.rstrip() for line in plain if line.strip() and not BUILDERS_OWN_LINE.match(line)]
    steps = [number for number, line in enumerate(lines) if STEP.match(line)]
    of_step = lines[steps[-1] :] if steps else lines
    kept = of_step if len(of_step) <= LINES_THAT_MATTER else [of_step[0], *of_step[1 - LINES_THAT_MATTER :]]
    return "\n".join(kept)
