"""The sections of a stack file and the rules about single values."""

from __future__ import annotations

import difflib
import ipaddress
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr
from pydantic.alias_generators import to_camel

import catalog
from config.errors import EXAMPLES

MAX_NODES = 64
WIDEST_ADMIN_PREFIX = 8


def _known(kind: str, known: Iterable[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value not in known:
            near = difflib.get_close_matches(value, list(known), n=1, cutoff=0.4)
            hint = f"did you mean '{near[0]}'?" if near else f"one of {', '.join(known)}"
            raise ValueError(f"'{value}' is not {kind}; {hint}")
        return value

    return AfterValidator(check)


def _one_of(kind: str, choices: tuple[int, ...]) -> AfterValidator:
    def check(value: int) -> int:
        if value not in choices:
            raise ValueError(f"{value} is not {kind}; one of {', '.join(map(str, choices))}")
        return value

    return AfterValidator(check)


def _admin_cidr(value: str) -> str:
    try:
        network = ipaddress.IPv4Network(value)
    except ValueError as error:
        raise ValueError(f"'{value}' is not an IPv4 network ({error}); for example 198.51.100.7/32") from error
    if network.prefixlen < WIDEST_ADMIN_PREFIX:
        raise ValueError(
            f"'{value}' opens port 22 to {network.num_addresses:,} addresses; name your own, for example 198.51.100.7/32"
        )
    return str(network)


def _image_reference(value: str) -> str:
    registry, _, rest = value.partition("/")
    if not rest or "." not in registry or value != value.strip() or any(c.isspace() for c in value):
        raise ValueError(f"'{value}' is not a full image reference; for example {EXAMPLES['container/image']}")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class Cluster(_Section):
    """The hardware: how many guests of which flavor, where, and who may log in."""

    datacenter: Annotated[StrictStr, _known("a datacenter that sells GPUs", catalog.DATACENTERS)]
    flavor: Annotated[StrictStr, _known("a flavor", catalog.FLAVORS)]
    admin_cidrs: Annotated[list[Annotated[StrictStr, AfterValidator(_admin_cidr)]], Field(min_length=1)]
    nodes: Annotated[StrictInt, Field(ge=1, le=MAX_NODES)] = 2
    port_speed_mbps: Annotated[StrictInt, _one_of("a port speed that is sold", catalog.PORT_SPEEDS_MBPS)] = 1000
    data_disk_gb: Annotated[StrictInt, _one_of("a disk size that is sold", catalog.DATA_DISK_SIZES_GB)] = 2000
    os: Annotated[StrictStr, _known("a system for GPU flavors", catalog.OPERATING_SYSTEMS)] | None = None
    image: StrictStr | None = None
    router: Annotated[StrictInt, Field(ge=1)] | None = None
    private_vlan: Annotated[StrictInt, Field(ge=1)] | None = None

    @property
    def hardware(self) -> catalog.Flavor:
        """What one node is made of."""
        return catalog.FLAVORS[self.flavor]


class Container(_Section):
    """The container in which the job runs on every node."""

    image: Annotated[StrictStr, AfterValidator(_image_reference)]
    name: Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")] = "openseq2seq"
    ssh_port: Annotated[StrictInt, Field(ge=1024, le=65535)] = 4444
    registry_key_file: StrictStr | None = None


class Job(_Section):
    """One training run."""

    kind: Literal["openseq2seq"]
    model: Literal["transformer-base", "transformer-tiny"]
    max_steps: Annotated[StrictInt, Field(ge=1, le=10_000_000)]
    dataset: Literal["wmt16-en-de", "debian-en-de"]
    precision: Literal["fp32", "mixed"]
    batch_per_gpu: Annotated[StrictInt, Field(ge=1, le=4096)]
    eval_steps: Annotated[StrictInt, Field(ge=1)]
    checkpoint_steps: Annotated[StrictInt, Field(ge=1, le=5000)]  # Beyond it a crash loses hours.


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
