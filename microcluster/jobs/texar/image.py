"""The image: Texar and its example on NVIDIA's TensorFlow, or the local image with our own language model and perhaps Texar."""

from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER, is_local
from microcluster.jobs.rendering import render
from microcluster.jobs.values import Image, PinnedSource

BASE = "nvcr.io/nvidia/tensorflow:19.09-py3"
"""The first of NVIDIA's images with Python 3.6, which Texar 0.2.4 needs; it has TensorFlow 1.14 and Horovod."""
COMMIT = "0cce879591833a46ab844a9d5565383b270f1b15"
"""Of github.com/asyml/texar: the tag v0.2.4, of 2019-11-18."""
SOURCE = PinnedSource(
    program="Texar",
    variable="TEXAR_SOURCE",
    repository="https://github.com/asyml/texar",
    commit=COMMIT,
    release="0.2.4",
    content="dc78cd263d27",
    parts=("LICENSE", "texar", "examples/distributed_gpu"),
    folder="Texar",
)
STAND_IN_RELEASE = "stand-in 0.1.0"
EXAMPLE_FOLDER, STAND_IN_FOLDER = "/opt/texar/examples/distributed_gpu", "/opt/microcluster/language-model"


def training_image(container: Container) -> Image:
    """Return the image on the container's base; the local one holds every program already."""
    local = is_local(container.image)
    program = (container.trainer or STAND_IN_RELEASE) if local else SOURCE.name
    folder = EXAMPLE_FOLDER if not local else LOCAL_PROGRAM_FOLDER if container.trainer else STAND_IN_FOLDER
    dockerfile = render("texar/Dockerfile", base=container.image, trainer=program, commit=COMMIT, bare=not local)
    return Image(dockerfile, program, folder)
