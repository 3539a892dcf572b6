"""The sections of a stack file, with what each value may be."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from microcluster import catalog
from microcluster.config.data import data as finished_data
from microcluster.config.validators import (
    account_image,
    admin_cidr,
    few_addresses,
    image_reference,
    key_file,
    known,
    one_of,
    run_or_reason,
)

MAX_NODES = 64
MOST_ADMIN_CIDRS = 40
"""A security group takes 50 rules."""
LARGEST_ID = 2**31 - 1
MOST_STEPS = 10_000_000


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Cluster(_Section):
    """The hardware: how many guests of which flavor, where, and who may log in."""

    datacenter: Annotated[StrictStr, known("a datacenter that sells GPUs", catalog.DATACENTERS)]
    flavor: Annotated[StrictStr, known("a flavor", catalog.FLAVORS)]
    admin_cidrs: Annotated[
        list[Annotated[StrictStr, AfterValidator(admin_cidr)]],
        Field(min_length=1, max_length=MOST_ADMIN_CIDRS),
        AfterValidator(few_addresses),
    ]
    nodes: Annotated[StrictInt, Field(ge=1, le=MAX_NODES)] = 2
    port_speed_mbps: Annotated[StrictInt, one_of("a port speed that is sold", catalog.PORT_SPEEDS_MBPS)] = 1000
    data_disk_gb: Annotated[StrictInt, one_of("a disk size that is sold", catalog.DATA_DISK_SIZES_GB)] = 2000
    os: Annotated[StrictStr, known("a system for GPU flavors", catalog.OPERATING_SYSTEMS)] | None = None
    image: Annotated[StrictStr, AfterValidator(account_image)] | None = None
    router: Annotated[StrictInt, Field(ge=1, le=LARGEST_ID)] | None = None
    private_vlan: Annotated[StrictInt, Field(ge=1, le=LARGEST_ID)] | None = None

    @property
    def hardware(self) -> catalog.Flavor:
        """What one node is made of."""
        return catalog.FLAVORS[self.flavor]


class Container(_Section):
    """The container in which the job runs on every node."""

    image: Annotated[StrictStr, AfterValidator(image_reference)]
    name: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")] = "openseq2seq"
    ssh_port: Annotated[StrictInt, Field(ge=1024, le=65535)] = 4444
    registry_key_file: Annotated[StrictStr, AfterValidator(key_file)] | None = None


class Job(_Section):
    """One training run."""

    kind: Literal["openseq2seq"]
    model: Literal["transformer-base", "transformer-tiny"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    dataset: Literal["wmt16-en-de", "debian-en-de"]
    precision: Literal["fp32", "mixed"]
    batch_per_gpu: Annotated[StrictInt, Field(ge=1, le=4096)]
    eval_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)]
    checkpoint_steps: Annotated[StrictInt, Field(ge=1, le=5000)]  # Beyond it a crash loses hours.
    trainer: Literal["stand-in"] | None = None
    preflight: Annotated[StrictStr, AfterValidator(run_or_reason)] = "run"
    data: Annotated[StrictStr, AfterValidator(finished_data)] | None = None


class StackFile(_Section):
    """The sections of a stack file."""

    cluster: Cluster
    container: Container
    job: Job


def keys_at(location: list[str]) -> list[str]:
    """Return the keys that are known below a path of the stack file."""
    section: type[_Section] = StackFile
    for part in location:
        section = {"cluster": Cluster, "container": Container, "job": Job}.get(part, section)
    return [field.alias or name for name, field in section.model_fields.items()]
