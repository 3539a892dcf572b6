"""The ``job`` section of a stack file: its keys, what follows from others, and what contradicts them."""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from microcluster.jobs.image import LOCAL_REPOSITORY, is_local, named_image, repository
from microcluster.jobs.texar.configurations import CONFIGURATIONS
from microcluster.jobs.texar.image import BASE, SOURCE
from microcluster.jobs.values import Hardware, Origin, Section, Sections

STAND_IN = "stand-in"
IMAGE, CONFIG = "follows from container.image", "follows from job.config"
NO_CHECKPOINT = "which writes no checkpoint: a run that ends early starts over"
ORIGINAL = f"not set: Texar's lm_ptb_distributed.py, {NO_CHECKPOINT}"
ONLY_STAND_IN = (
    "the local training image holds no Texar, but our own language model, which writes checkpoints; TEXAR_SOURCE=... make images "
    "brings Texar"
)
LOCAL_TEXTS = ("debian-en", "debian-en-10000")
"""For our own program, and for Texar itself."""
VALID_WORDS = {"ptb": 73_760, "debian-en-10000": 4_700}
"""Of the shortest text of each. Where it gives a step, the words of an epoch, 929,589 and 68,723, give ten, and by a tenth of
them lm_ptb_distributed.py divides."""
EPOCHS = "epochs"


def _number(at_least: float, at_most: float) -> Any:
    return Annotated[float, Field(strict=True, ge=at_least, le=at_most)]


class TexarSection(Section):
    """One training run of the distributed language model; its steps are epochs."""

    kind: Literal["texar"]
    config: Literal["tiny", "small", "medium", "large"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=1000)]
    dataset: Literal["ptb", "debian-en", "debian-en-10000"]
    global_batch: Annotated[StrictInt, Field(ge=1, le=4096)]
    sequence_length: Annotated[StrictInt, Field(ge=1, le=1000)]
    hidden_size: Annotated[StrictInt, Field(ge=1, le=8192)]
    keep_prob: _number(0.01, 1)
    init_scale: _number(0.0001, 1)
    learning_rate: _number(0.000001, 100)
    decay_rate: _number(0.001, 1)
    decay_start: Annotated[StrictInt, Field(ge=0, le=1000)]
    clip_norm: _number(0.01, 1000)
    trainer: Literal["stand-in"] | None = None
    preflight: StrictStr = "run"
    data: StrictStr | None = None


def defaults(sections: Sections, hardware: Hardware) -> dict[str, Origin]:
    """Return what follows from the image and the configuration; what is invalid is left for the validation."""
    job, local = sections["job"], is_local(named_image(sections))
    held = SOURCE.among(hardware.local_programs) if local else None
    ours = job.get("trainer") == STAND_IN or not held
    original = f"not set: {held} in the local training image, {NO_CHECKPOINT}" if held else ORIGINAL
    found = {
        "job.config": Origin("tiny" if local else "small", IMAGE),
        "job.dataset": Origin(LOCAL_TEXTS[not ours], f"{IMAGE} and job.trainer") if local else Origin("ptb", IMAGE),
        "job.trainer": Origin(STAND_IN, ONLY_STAND_IN) if local and not held else Origin(None, original),
    }
    config = CONFIGURATIONS.get(str(job.get("config", found["job.config"].value)))
    values = dataclasses.asdict(config) if config else {}
    if values:
        found["job.maxSteps"] = Origin(values.pop(EPOCHS), f"{CONFIG}; a step is an epoch")
    return found | {f"job.{to_camel(name)}": Origin(value, CONFIG) for name, value in values.items()}


def problems(sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
    """Say what contradicts the cluster and the container; a preview may name a base on which the image cannot be built."""
    job, image = sections["job"], named_image(sections)
    found = _problems_of_batch(job.get("globalBatch"), hardware.ranks)
    if is_local(image):
        return found if job.get("trainer") == STAND_IN else found + _problems_of_words(job) + _problems_of_text(job)
    found += _problems_of_text(job)
    if job.get("trainer") == STAND_IN:
        found.append(f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds it; leave trainer out")
    if job.get("dataset") in LOCAL_TEXTS:
        found.append(f"job/dataset: only the local training image ({LOCAL_REPOSITORY}) holds {job['dataset']}; use ptb")
    base = BASE.partition(":")[0]
    if ordering and f"{base.partition('/')[0]}/{repository(image)}" == base and image != BASE and "@" not in image:
        found.append(
            f"container/image: {image} has not the Python and TensorFlow for which templates/texar/Dockerfile pins the job's "
            f"packages; use {BASE}"
        )
    return found


def _problems_of_words(job: Mapping[str, Any]) -> list[str]:
    """Texar itself asserts the number of different words."""
    few, enough = LOCAL_TEXTS
    if job.get("dataset") != few:
        return []
    return [
        f"job/dataset: Texar trains on exactly 10,000 different words, and {few} has 1,000; use {enough}, or trainer: stand-in"
    ]


def _problems_of_text(job: Mapping[str, Any]) -> list[str]:
    """Refuse what leaves Texar's program without a step."""
    batch, length = job.get("globalBatch"), job.get("sequenceLength")
    words = VALID_WORDS.get(str(job.get("dataset")))
    if not words or type(batch) is not int or type(length) is not int or batch < 1 or length < 1:
        return []
    longest = words // batch - 1
    if length <= longest:
        return []
    return [
        f"job/sequenceLength: {length} words with globalBatch {batch} leave no step in the {words} words by which Texar's "
        f"program is evaluated; with this batch at most {longest}, or use a smaller batch"
    ]


def _problems_of_batch(batch: Any, ranks: int | None) -> list[str]:
    """Apply the rule of Texar's reader: it makes as many shards as a shard has rows, and the last rank needs one."""
    if not ranks or type(batch) is not int:
        return []
    if batch % ranks:
        return [
            f"job/globalBatch: {batch} is the batch of all ranks together, and {ranks} ranks cannot share it equally"
        ]
    if ranks > batch // ranks:
        return [
            f"job/globalBatch: {batch} rows of all ranks together are {batch // ranks} for each of {ranks} ranks, and Texar's reader "
            f"needs at least as many rows for each rank as there are ranks; use {ranks * ranks} or fewer GPUs"
        ]
    return []
