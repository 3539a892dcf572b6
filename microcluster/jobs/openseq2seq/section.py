"""The ``job`` section of a stack file: its keys, what follows from others, and what contradicts them."""

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from microcluster.jobs.image import LOCAL_REPOSITORY, NVIDIAS_IMAGE, PYTHON_3_5, is_local, named_image
from microcluster.jobs.openseq2seq.image import SOURCE
from microcluster.jobs.values import MOST_STEPS, Hardware, Origin, Section, Sections

STAND_IN = "stand-in"
ONLY_STAND_IN = "the local training image holds nothing else; OPENSEQ2SEQ_SOURCE=... make images brings OpenSeq2Seq"
UNPLANNED_STEPS = 200
"""Between checkpoints of the large model on what nobody has timed: about what the slowest that was timed gets."""
EVAL_STEPS = 4001
"""As OpenSeq2Seq's own configuration has it."""
USUAL_STEPS = {"transformer-tiny": 300, "transformer-base": 50_000}
MODEL, IMAGE = "follows from job.model", "follows from container.image"


class OpenSeq2SeqSection(Section):
    """One training run of the en-de Transformer."""

    kind: Literal["openseq2seq"]
    model: Literal["transformer-base", "transformer-tiny"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    dataset: Literal["wmt16-en-de", "debian-en-de"]
    precision: Literal["fp32", "mixed"]
    batch_per_gpu: Annotated[StrictInt, Field(ge=1, le=4096)]
    eval_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    checkpoint_steps: Annotated[StrictInt, Field(ge=1, le=5000)]  # Beyond it a crash loses hours.
    trainer: Literal["stand-in"] | None = None
    preflight: StrictStr = "run"
    data: StrictStr | None = None


def defaults(sections: Sections, hardware: Hardware) -> dict[str, Origin]:
    """Return what follows from other values; what is invalid is left for the validation."""
    job, local, trainer = sections["job"], _is_local(sections), SOURCE.among(hardware.local_programs)
    found = {"job.model": Origin("transformer-tiny" if local else "transformer-base", IMAGE)}
    if local and trainer is None:
        found["job.trainer"] = Origin(STAND_IN, ONLY_STAND_IN)
    else:
        found["job.trainer"] = Origin(
            None, f"not set: {trainer} in the local training image" if local else "not set: OpenSeq2Seq"
        )
    model = str(job.get("model", found["job.model"].value))
    tiny = model == "transformer-tiny"
    if model in USUAL_STEPS:
        found["job.maxSteps"] = Origin(USUAL_STEPS[model], MODEL)
    found["job.dataset"] = Origin("debian-en-de" if tiny else "wmt16-en-de", MODEL)
    usual = "mixed" if hardware.precision == "mixed" and not tiny else "fp32"
    found["job.precision"] = Origin(usual, "follows from cluster.flavor and job.model")
    batch = 16 if tiny else 256 if job.get("precision", usual) == "mixed" else 128
    found["job.batchPerGpu"] = Origin(batch, f"{MODEL} and job.precision (16 bits fit twice as much)")
    found["job.evalSteps"] = Origin(100 if tiny else EVAL_STEPS, MODEL)
    # Where planning knows the time of a step, the money at risk decides.
    found["job.checkpointSteps"] = Origin(100 if tiny else UNPLANNED_STEPS, f"{MODEL}: nothing like it was timed")
    return found


def problems(sections: Sections, *, ordering: bool) -> list[str]:
    """Say what contradicts the container; a preview may name a base on which the image cannot be built."""
    found = []
    if sections["job"].get("trainer") == STAND_IN and not _is_local(sections):
        found.append(
            f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds the stand-in; leave trainer out, and "
            "OpenSeq2Seq trains"
        )
    named = named_image(sections)
    repository, _, tag = named.partition(":")
    if ordering and repository == NVIDIAS_IMAGE and "@" not in named and not PYTHON_3_5.fullmatch(tag):
        found.append(
            f"container/image: {named} has another Python than 3.5, for which templates/openseq2seq/Dockerfile pins the job's "
            f"packages; use {NVIDIAS_IMAGE}:19.05-py3"
        )
    return found


def _is_local(sections: Sections) -> bool:
    return is_local(named_image(sections))
