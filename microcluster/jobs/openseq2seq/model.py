"""The en-de Transformer: its sizes, its configuration as ``run.py`` reads it, and how a rank is started."""

from dataclasses import dataclass

from microcluster.jobs.cluster_facts import Data
from microcluster.jobs.openseq2seq.datasets import DATASETS, recipe_id
from microcluster.jobs.rendering import render

CONFIG_TEMPLATE = "openseq2seq/transformer_base.py.j2"
CHECKPOINT_BYTES = 14
"""Of one parameter, in mixed precision."""


@dataclass(frozen=True)
class OpenSeq2SeqJob:
    """One training run; ``precision`` is "fp32" or "mixed", batch is in sentence pairs per rank, a run without progress ends."""

    kind: str
    model: str
    max_steps: int
    precision: str
    batch_per_gpu: int
    eval_steps: int
    checkpoint_steps: int
    dataset: str
    stall_s: int = 900
    keep: tuple[str, ...] = ()
    preflight: str = "run"
    data: Data | None = None


@dataclass(frozen=True)
class Size:
    """What makes a Transformer big or small; lengths are in sentence pieces, batches in sentence pairs per rank."""

    hidden: int
    layers: int
    heads: int
    filter: int
    train_length: int
    eval_length: int
    eval_batch: int
    learning_rate: float
    warmup_steps: int
    print_steps: int
    sample_steps: int
    map_calls: int


SIZES = {
    "transformer-base": Size(512, 6, 8, 2048, 56, 256, 16, 2.0, 8000, 100, 100, 16),
    "transformer-tiny": Size(64, 1, 4, 256, 32, 32, 16, 0.5, 100, 10, 100, 2),
}
PUBLISHED_PARAMETERS = {("transformer-base", "wmt16-en-de"): 60_880_896}
"""From the size of a published checkpoint (852.27 MB at 14 bytes each), whose runs the predictions are made of."""
DTYPES = {"fp32": ("tf.float32", None), "mixed": ('"mixed"', "Backoff")}


def render_config(job: OpenSeq2SeqJob, mount_point: str, logdir: str) -> str:
    """Return the Python file that ``run.py --config_file`` reads."""
    dtype, loss_scaling = DTYPES[job.precision]
    return render(
        CONFIG_TEMPLATE,
        size=SIZES[job.model],
        data=DATASETS[job.dataset],
        data_root=data_folder(job, mount_point) + "/",  # File names are appended to it as they are.
        logdir=logdir,
        max_steps=job.max_steps,
        eval_steps=job.eval_steps,
        checkpoint_steps=job.checkpoint_steps,
        batch_per_gpu=job.batch_per_gpu,
        dtype=dtype,
        loss_scaling=loss_scaling,
    )


def parameters(job: OpenSeq2SeqJob) -> int:
    """Return about how many numbers the model has: the shared embedding, and the matrices of both stacks of layers."""
    size = SIZES[job.model]
    attention, feed_forward = 4 * size.hidden**2, 2 * size.hidden * size.filter
    encoder, decoder = attention + feed_forward, 2 * attention + feed_forward
    return DATASETS[job.dataset].vocabulary_size * size.hidden + size.layers * (encoder + decoder)


def data_id(job: OpenSeq2SeqJob) -> str:
    """Return what names the job's data: the files that were brought, else what the data set's own recipe makes."""
    return job.data.id if job.data else recipe_id(job.dataset)


def data_folder(job: OpenSeq2SeqJob, mount_point: str) -> str:
    """Return the folder of the job's data on every host; data that were brought lie apart from what is made here."""
    folder = f"{mount_point}/{DATASETS[job.dataset].folder}"
    return f"{folder}-{data_id(job)}" if job.data else folder


def program(config_file: str, *, resume: bool = False) -> tuple[str, ...]:
    """Return the argv of one rank; ``resume`` goes on from the latest checkpoint of a log folder that has one."""
    words = ("python", "run.py", f"--config_file={config_file}", "--use_horovod=True", "--mode=train_eval")
    return (*words, "--continue_learning") if resume else words


def learning_rate(job: OpenSeq2SeqJob, step: int) -> float:
    """Compute the rate of an update, counted from 1, by the transformer's policy: it rises, then falls with the root."""
    size, step = SIZES[job.model], max(step, 1)
    return size.learning_rate * size.hidden**-0.5 * min(step**-0.5, step * size.warmup_steps**-1.5)
