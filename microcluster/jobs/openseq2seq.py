"""The kind ``openseq2seq``: NVIDIA's en-de Transformer, trained by OpenSeq2Seq over Horovod and Open MPI."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from agent.run.document import Metric, RunDocument
from microcluster.jobs import openseq2seq_translation
from microcluster.jobs.finished_data import DataPlan, FinishedData
from microcluster.jobs.image import (
    LOCAL_PROGRAM_FOLDER,
    LOCAL_REPOSITORY,
    NVIDIAS_IMAGE,
    PYTHON_3_5,
    is_local,
    named_image,
)
from microcluster.jobs.job_section import (
    GRADIENT_BYTES,
    MOST_STEPS,
    Hardware,
    Origin,
    PinnedSource,
    Section,
    Sections,
    Workload,
    disk_bytes,
)
from microcluster.jobs.mpirun import by_mpirun
from microcluster.jobs.openseq2seq_datasets import DATASETS, data_of
from microcluster.jobs.ranks import RankCommand
from microcluster.jobs.rendering import render

COMMIT = "8681d381"
"""The last commit of OpenSeq2Seq's master, of 2020-09-09; its source is pinned to it."""
STAND_IN_RELEASE = "stand-in 0.1.0"
SOURCE = PinnedSource(
    program="OpenSeq2Seq",
    name=f"OpenSeq2Seq {COMMIT}",
    variable="OPENSEQ2SEQ_SOURCE",
    repository="https://github.com/NVIDIA/OpenSeq2Seq",
    commit="8681d381ed404fde516e2c1b823de5a213c59aba",
    content="2035e93b06a9",
    parts=("LICENSE", "open_seq2seq", "run.py", "tokenizer_wrapper.py"),
    folder="OpenSeq2Seq",
    stand_in=STAND_IN_RELEASE,
)
STAND_IN_FOLDER = "/opt/microcluster/stand-in"
PROGRAM_FOLDERS = {None: "/opt/OpenSeq2Seq", STAND_IN_RELEASE: STAND_IN_FOLDER}
"""Folder of the program by the trainer of the local training image; None in every other image."""
CONFIG_FILE = "config.py"
CHECKPOINT_FILES = (
    "checkpoint (which one is newest), .meta (the graph), .index (where each tensor lies), .data (the weights)"
)
CHECKPOINT_BYTES = 14
"""Of one parameter, in mixed precision."""
STAND_IN = "stand-in"
ONLY_STAND_IN = "the local training image holds nothing else; OPENSEQ2SEQ_SOURCE=... make images brings OpenSeq2Seq"
USUAL = {
    "transformer-base": {
        "maxSteps": 50_000,
        "dataset": "wmt16-en-de",
        "evalSteps": 4001,  # As OpenSeq2Seq's own configuration has it.
        # On what nobody has timed about what the slowest that was timed gets; elsewhere the money at risk decides.
        "checkpointSteps": 200,
    },
    "transformer-tiny": {"maxSteps": 300, "dataset": "debian-en-de", "evalSteps": 100, "checkpointSteps": 100},
}
MODEL, IMAGE = "follows from job.model", "follows from container.image"
METRICS = (
    Metric("bleu", "BLEU", "bleu", "score", note="teacher-forced and on sentence pieces: no score of a translation"),
    Metric("learning_rate", "learning rate", scalar="learning_rate"),
)


@dataclass(frozen=True)
class Size:
    """Size of a Transformer; lengths are in sentence pieces, batches in sentence pairs per rank."""

    hidden: int
    layers: int
    heads: int
    filter: int
    train_length: int
    eval_length: int
    learning_rate: float
    warmup_steps: int
    print_steps: int
    map_calls: int


SIZES = {
    "transformer-base": Size(512, 6, 8, 2048, 56, 256, 2.0, 8000, 100, 16),
    "transformer-tiny": Size(64, 1, 4, 256, 32, 32, 0.5, 100, 10, 2),
}
PUBLISHED_PARAMETERS = {("transformer-base", "wmt16-en-de"): 60_880_896}
"""Parameters by the size of a published checkpoint (852.27 MB at 14 bytes each), whose runs the predictions are made of."""
MAKING_DATA_H = (2, 3, 6)
"""Download and pieces of WMT16 took two hours in London, five in Washington and up to six elsewhere."""
DTYPES = {"fp32": ("tf.float32", None), "mixed": ('"mixed"', "Backoff")}


class Job(Section):
    """See `microcluster.jobs.job_section.Section`."""

    local_source = SOURCE
    config_file = CONFIG_FILE
    translator = openseq2seq_translation

    kind: Literal["openseq2seq"]
    model: Literal["transformer-base", "transformer-tiny"]
    dataset: Literal["wmt16-en-de", "debian-en-de"]
    precision: Literal["fp32", "mixed"]
    batch_per_gpu: Annotated[StrictInt, Field(ge=1, le=4096)]
    eval_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    checkpoint_steps: Annotated[StrictInt, Field(ge=1, le=5000)]  # Beyond it a crash loses hours.
    trainer: Literal["stand-in"] | None = None
    data: FinishedData | None = None

    @classmethod
    def defaults(cls, sections: Sections, hardware: Hardware) -> dict[str, Origin]:
        """Return what follows from other values; what is invalid is left for the validation."""
        job, local, held = sections["job"], is_local(named_image(sections)), SOURCE.among(hardware.local_programs)
        trainer = Origin(None, f"not set: {held} in the local training image" if local else "not set: OpenSeq2Seq")
        if local and held is None:
            trainer = Origin(STAND_IN, ONLY_STAND_IN)
        model = Origin("transformer-tiny" if local else "transformer-base", IMAGE)
        named = str(job.get("model", model.value))
        tiny = named == "transformer-tiny"
        precision = "mixed" if hardware.precision == "mixed" and not tiny else "fp32"
        batch = 256 if job.get("precision", precision) == "mixed" else 128
        found = {key: Origin(value, MODEL) for key, value in USUAL.get(named, USUAL["transformer-base"]).items()}
        found["trainer"], found["model"] = trainer, model
        found["precision"] = Origin(precision, "follows from cluster.flavor and job.model")
        found["batchPerGpu"] = Origin(16 if tiny else batch, f"{MODEL} and job.precision (16 bits fit twice as much)")
        found["checkpointSteps"] = replace(found["checkpointSteps"], reason=f"{MODEL}: nothing like it was timed")
        return {f"job.{key}": origin for key, origin in found.items()}

    @classmethod
    def problems(cls, sections: Sections, hardware: Hardware, *, ordering: bool) -> list[str]:
        """Say what contradicts the container; a preview may name a base on which the image cannot be built."""
        named, found = named_image(sections), []
        if sections["job"].get("trainer") == STAND_IN and not is_local(named):
            found.append(
                f"job/trainer: only the local training image ({LOCAL_REPOSITORY}) holds the stand-in; leave trainer out, and "
                "OpenSeq2Seq trains"
            )
        repository, _, tag = named.partition(":")
        if ordering and repository == NVIDIAS_IMAGE and "@" not in named and not PYTHON_3_5.fullmatch(tag):
            found.append(
                f"container/image: {named} has another Python than 3.5, for which templates/openseq2seq/Dockerfile pins the job's "
                f"packages; use {NVIDIAS_IMAGE}:19.05-py3"
            )
        return found

    def workload(self) -> Workload | None:
        """Return the published model's step; another data set has another vocabulary and other lengths."""
        known = PUBLISHED_PARAMETERS.get((self.model, self.dataset))
        if not known:
            return None
        data_h = (0, 0, 0) if self.data else MAKING_DATA_H
        return Workload(self.model, self.precision, self.batch_per_gpu, GRADIENT_BYTES * known, data_h)

    def planned_rate(self, step: int) -> float:
        """Compute the rate of an update, counted from 1, by the transformer's policy: it rises, then falls with the root."""
        size, step = SIZES[self.model], max(step, 1)
        return size.learning_rate * size.hidden**-0.5 * min(step**-0.5, step * size.warmup_steps**-1.5)

    def data_of(self, disk: str, brought: str | None) -> DataPlan:
        """Return the sentence pairs and the vocabulary."""
        return data_of(self.dataset, disk, brought)

    def document(self, begun: RunDocument) -> RunDocument:
        """Return the run document: one mpirun starts all ranks."""
        numbers, trainer = self.parameters(), begun.program.trainer
        config, gradients = f"--config_file={begun.folder}/{CONFIG_FILE}", GRADIENT_BYTES * numbers
        words = ("python", "run.py", config, "--use_horovod=True", "--mode=train_eval")
        # It goes on from the latest checkpoint of a log folder that has one.
        command = RankCommand(words, (*words, "--continue_learning"), "python", CONFIG_FILE, model_bytes=gradients)
        program = begun.program._replace(
            title=f"{self.model} on {self.dataset}, {self.precision}, {self.batch_per_gpu} pairs per rank",
            trainer=trainer or SOURCE.name,
            folder=PROGRAM_FOLDERS.get(trainer, LOCAL_PROGRAM_FOLDER),
            **by_mpirun(begun, command),
        )
        size = SIZES[self.model]
        return begun._replace(
            program=program,
            logs=begun.logs._replace(reader="openseq2seq", metrics=METRICS, mixed=self.precision == "mixed"),
            checkpoints=begun.checkpoints._replace(format="tensorflow", files=CHECKPOINT_FILES),
            limits=begun.limits._replace(disk_bytes=disk_bytes(CHECKPOINT_BYTES * numbers)),
            expected=begun.expected._replace(
                eval_steps=self.eval_steps,
                print_steps=size.print_steps,
                model_bytes=gradients,
                warmup_steps=size.warmup_steps,
                schedule=(
                    f"By lr_policy in {CONFIG_FILE}, transformer_policy, it is {size.learning_rate} * {size.hidden}^-0.5 * "
                    f"min(step^-0.5, step * {size.warmup_steps}^-1.5) (learning_rate, d_model, warmup_steps). It warms up because Adam's "
                    "averages of the gradients are still poor at first, and full updates would diverge; it decays so that the loss can "
                    "settle."
                ),
            ),
        )

    def dockerfile(self, base: str, trainer: str | None) -> str:
        """Install the trainer, which the local image holds already."""
        name = trainer or SOURCE.name
        return render("openseq2seq/Dockerfile", base=base, trainer=name, commit=COMMIT, bare=trainer is None)

    def configuration(self, data_folder: str, logdir: str, files: Mapping[str, str] | str) -> str:
        """Return the Python file that ``run.py`` reads."""
        dtype, loss_scaling = DTYPES[self.precision]
        return render(
            "openseq2seq/transformer_base.py.j2",
            size=SIZES[self.model],
            data=DATASETS[self.dataset],
            data_root=data_folder + "/",  # File names are appended to it as they are.
            logdir=logdir,
            max_steps=self.max_steps,
            eval_steps=self.eval_steps,
            checkpoint_steps=self.checkpoint_steps,
            batch_per_gpu=self.batch_per_gpu,
            dtype=dtype,
            loss_scaling=loss_scaling,
        )

    def parameters(self) -> int:
        """Return about how many numbers the model has: the shared embedding, and the matrices of both stacks of layers."""
        size = SIZES[self.model]
        attention, feed_forward = 4 * size.hidden**2, 2 * size.hidden * size.filter
        encoder, decoder = attention + feed_forward, 2 * attention + feed_forward
        _, pieces = DATASETS[self.dataset].vocabulary
        return pieces * size.hidden + size.layers * (encoder + decoder)
