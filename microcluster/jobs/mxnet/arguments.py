"""The command line of MXNet's image-classification example, which our own local trainer takes too.

Names and meaning: example/image-classification/common/fit.py and data.py of apache/mxnet 1.1.0 to 1.9.1.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent import spec

if TYPE_CHECKING:
    from microcluster.jobs.mxnet import MxnetJob

LOSS_SINCE = (1, 2)
"""``--loss`` came with 1.2.0; without it no line holds a loss."""
OF_THE_KEYS = (
    *("network", "num_layers", "data_train", "data_val", "image_shape", "num_classes", "num_examples", "batch_size"),
    *("kv_store", "gc_type", "gc_threshold", "lr", "lr_factor", "lr_step_epochs", "mom", "wd", "dtype"),
    *("disp_batches", "data_nthreads"),
)


def version_of(text: str) -> tuple[int, ...]:
    """Return a version as numbers."""
    return tuple(int(part) for part in text.split("."))


def trainer(job: "MxnetJob", prefix: str, gpus: Sequence[int], *, resume: bool) -> tuple[str, ...]:
    """Return the arguments of one worker; a model prefix stands there always, because nothing is saved without it."""
    known = ((name.replace("_", "-"), getattr(job, name)) for name in OF_THE_KEYS)
    words = [word for name, value in known if value is not None for word in (f"--{name}", str(value))]
    words += ["--num-epochs", str(job.max_steps), "--model-prefix", prefix]
    words += ["--gpus", ",".join(map(str, gpus))] if gpus else []
    words += ["--loss", "ce"] if version_of(job.mxnet_version) >= LOSS_SINCE else []
    return (*words, *(("--load-epoch", spec.STEP) if resume else ()))
