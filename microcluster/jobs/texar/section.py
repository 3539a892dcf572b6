"""The ``job`` section of a stack file: its keys, what follows from others, and what contradicts them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

from pydantic import Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from microcluster.jobs.image import LOCAL_REPOSITORY, is_local, named_image, repository
from microcluster.jobs.texar.configurations import CONFIGURATIONS
from microcluster.jobs.texar.image import BASE
from microcluster.jobs.values import Hardware, Origin, Section, Sections

STAND_IN = "stand-in"
IMAGE, CONFIG = "follows from container.image", "follows from job.config"
ORIGINAL = "not set: Texar's lm_ptb_distributed.py, which writes no checkpoint: a run that ends early starts over"
ONLY_STAND_IN = "the local training image holds no Texar, but our own language model, which writes checkpoints"
LOCAL_TEXT = "debian-en"
VALID_WORDS = 73_760
"""Of the Penn Treebank, whose shortest text that is. Where it gives a step, the 929,589 words of an epoch give ten, and by a
tenth of them lm_ptb_distributed.py divides."""
EPOCHS = "epochs"


def _number(at_least: float, at_most: float) -> Any:
    return Annotated[float, Field(strict=True, ge=at_least, le=at_most)]


class TexarSection(Section):
    """One training run of the distributed language model; its steps are epochs."""

    kind: Literal["texar"]
    config: Literal["tiny", "small", "medium", "large"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=1000)]
    dataset: Literal["ptb", "debian-en"]
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


def defaults(sections: Sections) -> dict[str, Origin]:
    """Return what follows from the image and the configuration; what is invalid is left for the validation."""
    job, local = sections["job"], is_local(named_image(sections))
    found = {
        "job.config": Origin("tiny" if local else "small", IMAGE),
        "job.dataset": Origin(LOCAL_TEXT if local else "ptb", IMAGE),
        "job.trainer": Origin(STAND_IN, ONLY_STAND_IN) if local else Origin(None, ORIGINAL),
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
        return found
    found += _problems_of_text(job.get("globalBatch"), job.get("sequenceLength"))
    if job.get("trainer") == STAND_IN:
        found.append(f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds it; leave trainer out")
    if job.get("dataset") == LOCAL_TEXT:
        found.append(f"job/dataset: only the local training image ({LOCAL_REPOSITORY}) holds {LOCAL_TEXT}; use ptb")
    base = BASE.partition(":")[0]
    if ordering and f"{base.partition('/')[0]}/{repository(image)}" == base and image != BASE and "@" not in image:
        found.append(
            f"container/image: {image} has not the Python and TensorFlow for which templates/texar/Dockerfile pins the job's "
            f"packages; use {BASE}"
        )
    return found


def _problems_of_text(batch: Any, length: Any) -> list[str]:
    """Refuse what leaves Texar's program without a step."""
    if type(batch) is not int or type(length) is not int or batch < 1 or length < 1:
        return []
    longest = VALID_WORDS // batch - 1
    if length <= longest:
        return []
    return [
        f"job/sequenceLength: {length} words with globalBatch {batch} leave no step in the {VALID_WORDS} words by which Texar's "
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
