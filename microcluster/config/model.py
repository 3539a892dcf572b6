"""The sections of a stack file and the allowed values."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

from microcluster.catalog import softlayer as catalog
from microcluster.config.validators import (
    account_image,
    admin_cidr,
    few_addresses,
    image_reference,
    key_file,
    known,
    one_of,
)
from microcluster.jobs.kind import section_of

MAX_NODES = 64
MOST_ADMIN_CIDRS = 40
"""A security group takes 50 rules."""
LARGEST_ID = 2**31 - 1


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Cluster(_Section):
    """The hardware, and who may log in."""

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
        return catalog.FLAVORS[self.flavor]


class Container(_Section):
    """The container in which the job runs on every node."""

    image: Annotated[StrictStr, AfterValidator(image_reference)]
    name: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")] = "training"
    ssh_port: Annotated[StrictInt, Field(ge=1024, le=65535)] = 4444
    registry_key_file: Annotated[StrictStr, AfterValidator(key_file)] | None = None


JobSection = TypeVar("JobSection", bound=BaseModel)


class StackFile(_Section, Generic[JobSection]):
    """The sections of a stack file; the job's kind defines ``job``."""

    cluster: Cluster
    container: Container
    job: JobSection


def stack_file(job: object) -> type[StackFile]:
    """Return the model of a stack file with this ``job`` section."""
    return StackFile[section_of(job)]


def keys_at(file: type[StackFile], location: list[str]) -> list[str]:
    """Return the known keys below a path of the stack file."""
    section: type[BaseModel] = file
    for part in location:
        field = section.model_fields.get(part)
        section = field.annotation if field and isinstance(field.annotation, type) else section
    return [field.alias or name for name, field in section.model_fields.items()]
