"""The training image: OpenSeq2Seq on NVIDIA's TensorFlow, or the local image with the stand-in and perhaps OpenSeq2Seq."""

from microcluster.jobs.cluster_facts import Container
from microcluster.jobs.image import LOCAL_PROGRAM_FOLDER, is_local
from microcluster.jobs.rendering import render
from microcluster.jobs.values import Image, PinnedSource

TEMPLATE = "openseq2seq/Dockerfile"
COMMIT = "8681d381"
"""The last commit of OpenSeq2Seq's master, of 2020-09-09; its source is pinned to it."""
SOURCE = PinnedSource(
    program="OpenSeq2Seq",
    variable="OPENSEQ2SEQ_SOURCE",
    repository="https://github.com/NVIDIA/OpenSeq2Seq",
    commit="8681d381ed404fde516e2c1b823de5a213c59aba",
    release=COMMIT,
    content="2035e93b06a9",
    parts=("LICENSE", "open_seq2seq", "run.py", "tokenizer_wrapper.py"),
    folder="OpenSeq2Seq",
)
FRAMEWORK = SOURCE.name
STAND_IN_RELEASE = "stand-in 0.1.0"
PROGRAM_FOLDER = "/opt/OpenSeq2Seq"
STAND_IN_FOLDER = "/opt/microcluster/stand-in"


def training_image(container: Container) -> Image:
    """Return the image on the container's base; the local one holds every package already."""
    local = is_local(container.image)
    program = (container.trainer or STAND_IN_RELEASE) if local else FRAMEWORK
    folder = PROGRAM_FOLDER if not local else LOCAL_PROGRAM_FOLDER if container.trainer else STAND_IN_FOLDER
    dockerfile = render(TEMPLATE, base=container.image, trainer=program, commit=COMMIT, bare=not local)
    return Image(dockerfile, program, folder)
