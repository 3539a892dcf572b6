"""The OpenSeq2Seq en-de Transformer as a job: its sizes, its rendered configuration, its data's place and its run id."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass

from microcluster.jobs import image
from microcluster.jobs.cluster_facts import ClusterFacts, Job
from microcluster.jobs.datasets import DATASETS, recipe_id
from microcluster.jobs.rendering import render

CONFIG_TEMPLATE = "transformer_base.py.j2"
RUN_ID_DIGITS = 12


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
    "transformer-tiny": Size(64, 2, 4, 256, 32, 32, 16, 0.5, 100, 10, 100, 2),
}
DTYPES = {"fp32": ("tf.float32", None), "mixed": ('"mixed"', "Backoff")}


def run_id(payload: ClusterFacts) -> str:
    """Return the twelve hex digits that name the run.

    They change with everything that makes a run another one, and with nothing else: not with max_steps, which may be
    raised to go on, and not with the hosts' addresses, which a preview does not know. The image's name stands for its
    Dockerfile, and with it for its base and for the version of what trains.
    """
    payload.require("job", "container", "hosts")
    assert payload.job and payload.container
    endless = dataclasses.replace(payload.job, max_steps=0)
    identity = {
        "config": render_config(endless, payload.mount_point, logdir="-"),
        "image": image.tag(payload.container),
        "data": data_id(payload.job),
        "world": [len(payload.hosts), payload.slots],
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:RUN_ID_DIGITS]


def render_config(job: Job, mount_point: str, logdir: str) -> str:
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


def parameters(job: Job) -> int:
    """Return about how many numbers the model has: the shared embedding, and the matrices of both stacks of layers."""
    size = SIZES[job.model]
    attention, feed_forward = 4 * size.hidden**2, 2 * size.hidden * size.filter
    encoder, decoder = attention + feed_forward, 2 * attention + feed_forward
    return DATASETS[job.dataset].vocabulary_size * size.hidden + size.layers * (encoder + decoder)


def data_id(job: Job) -> str:
    """Return what names the job's data: the files that were brought, else what the data set's own recipe makes."""
    return job.data.id if job.data else recipe_id(job.dataset)


def data_folder(job: Job, mount_point: str) -> str:
    """Return the folder of the job's data on every host; data that were brought lie apart from what is made here."""
    folder = f"{mount_point}/{DATASETS[job.dataset].folder}"
    return f"{folder}-{data_id(job)}" if job.data else folder


def program(config_file: str, *, resume: bool = False) -> tuple[str, ...]:
    """Return the argv of one rank; ``resume`` goes on from the latest checkpoint of a log folder that has one."""
    words = ("python", "run.py", f"--config_file={config_file}", "--use_horovod=True", "--mode=train_eval")
    return (*words, "--continue_learning") if resume else words


def inference(config_file: str, logdir: str, output: str) -> tuple[str, ...]:
    """Return the argv that translates the configuration's source with the model that ``logdir`` names, on one GPU."""
    words = ("python", "run.py", f"--config_file={config_file}", "--mode=infer", "--use_horovod=False")
    return (*words, f"--logdir={logdir}", f"--infer_output_file={output}")
