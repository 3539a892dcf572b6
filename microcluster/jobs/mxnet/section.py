"""The ``job`` section of a stack file for MXNet."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictFloat, StrictInt, StrictStr

from microcluster.jobs.own_program.section import (
    LONGEST,
    OwnProgramSection,
    json_or_pattern,
    matching,
    regular_expression,
)
from microcluster.jobs.values import MOST_STEPS

FORMAT = "mxnet"
"""Of the log and of the checkpoints, where the program writes them as MXNet does."""
VERSION = re.compile(r"\d+\.\d+\.\d+")
NUMBERS = re.compile(r"\d+(,\d+)*")
PATH = re.compile(r"/[A-Za-z0-9_./-]+")
NAME = re.compile(r"[A-Za-z0-9_-]+")
PerNode = Annotated[StrictInt, Field(ge=1, le=64)]
Count = Annotated[StrictInt, Field(ge=1, le=10**9)]
Rate = Annotated[StrictFloat, Field(ge=0, le=1000)]
File = Annotated[StrictStr, matching(PATH, "the path of a file that is on every machine")]
Epochs = Annotated[StrictStr, matching(NUMBERS, "a list of numbers; for example 30,60")]


def _checkpoints(value: str) -> str:
    return value if value == FORMAT else regular_expression(value)


def _progress(value: str) -> str:
    return value if value == FORMAT else json_or_pattern(value)


class MxnetSection(OwnProgramSection):
    """What the stack file may say; a step is an epoch. With ``network`` the program gets the arguments of MXNet's image-classification example."""

    kind: Literal["mxnet"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    mxnet_version: Annotated[StrictStr, matching(VERSION, "a version; for example 1.9.1")] = "1.9.1"
    device: Literal["gpu", "cpu"] = "gpu"
    servers_per_node: PerNode = 1
    workers_per_node: PerNode = 1
    kv_store: Literal["dist_sync", "dist_device_sync"] = "dist_sync"
    gc_type: Literal["none", "2bit"] = "none"
    gc_threshold: Annotated[StrictFloat, Field(gt=0, le=1000)] = 0.5
    progress: Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(_progress)] = FORMAT
    checkpoints: Annotated[StrictStr, Field(max_length=LONGEST), AfterValidator(_checkpoints)] = FORMAT
    stop_grace_s: Annotated[StrictInt, Field(ge=0, le=3600)] = 0
    network: Annotated[StrictStr, matching(NAME, "the name of a network; for example resnet")] | None = None
    num_layers: Count | None = None
    data_train: File | None = None
    data_val: File | None = None
    image_shape: Epochs | None = None
    num_classes: Count | None = None
    num_examples: Count | None = None
    batch_size: Count = 128
    lr: Rate = 0.1
    lr_factor: Rate = 0.1
    lr_step_epochs: Epochs = "30,60"
    mom: Rate = 0.9
    wd: Rate = 0.0001
    dtype: Literal["float32", "float16"] = "float32"
    disp_batches: Count = 20
    data_nthreads: Count = 4
