"""The OpenSeq2Seq en-de Transformer as a job: its sizes, its data sets, its rendered configuration and its run id."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass

from launchers import image
from launchers.payload import Job, Payload
from launchers.rendering import render

CONFIG_TEMPLATE = "transformer_base.py.j2"
PROGRAM_FOLDER = "/opt/OpenSeq2Seq"
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


@dataclass(frozen=True)
class Dataset:
    """Where a data set lies below the mount point, the files the job reads, and the script that prepares it."""

    folder: str
    vocabulary: str
    train_source: str
    train_target: str
    eval_source: str
    eval_target: str
    script: str
    vocabulary_size: int

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that has to be on every host."""
        return (self.vocabulary, self.train_source, self.train_target, self.eval_source, self.eval_target)


SIZES = {
    "transformer-base": Size(512, 6, 8, 2048, 56, 256, 16, 2.0, 8000, 100, 100, 16),
    "transformer-tiny": Size(64, 2, 4, 256, 32, 32, 16, 0.5, 100, 10, 100, 2),
}
DATASETS = {
    "wmt16-en-de": Dataset(
        "wmt16_de_en",
        "m_common.vocab",
        "train.clean.en.shuffled.BPE_common.32K.tok",
        "train.clean.de.shuffled.BPE_common.32K.tok",
        "wmt13-en-de.src.BPE_common.32K.tok",
        "wmt13-en-de.ref.BPE_common.32K.tok",
        "prepare_wmt16_en_de.sh.j2",
        32768,
    ),
    "debian-en-de": Dataset(
        "debian_en_de",
        "m_common.vocab",
        "train.en.tok",
        "train.de.tok",
        "eval.en.tok",
        "eval.de.tok",
        "prepare_debian_en_de.sh.j2",
        2048,
    ),
}
DTYPES = {"fp32": ("tf.float32", None), "mixed": ('"mixed"', "Backoff")}


def run_id(payload: Payload) -> str:
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
        "dataset": payload.job.dataset,
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


def data_folder(job: Job, mount_point: str) -> str:
    """Return the folder of the job's data set on every host."""
    return f"{mount_point}/{DATASETS[job.dataset].folder}"


def program(config_file: str, *, resume: bool = False) -> tuple[str, ...]:
    """Return the argv of one rank; ``resume`` goes on from the latest checkpoint of a log folder that has one."""
    words = ("python", "run.py", f"--config_file={config_file}", "--use_horovod=True", "--mode=train_eval")
    return (*words, "--continue_learning") if resume else words


def inference(config_file: str, logdir: str, output: str) -> tuple[str, ...]:
    """Return the argv that translates the configuration's source with the model that ``logdir`` names, on one GPU."""
    words = ("python", "run.py", f"--config_file={config_file}", "--mode=infer", "--use_horovod=False")
    return (*words, f"--logdir={logdir}", f"--infer_output_file={output}")
