"""The stack file as one typed, frozen object, with every rule about it; all problems are reported at once, before anything is ordered."""

from __future__ import annotations

import difflib
import ipaddress
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from pydantic.alias_generators import to_camel

import catalog

NAMESPACE = "microcluster"
STACKS = Path(__file__).parent / "stacks"
DOCUMENTATION_CIDR = "203.0.113.7/32"
MAX_NODES = 64
WIDEST_ADMIN_PREFIX = 8
EXAMPLES = {"cluster.datacenter": "lon04", "cluster.flavor": "AC2_16X120X100", "cluster.adminCidrs": "[198.51.100.7/32]",
            "container.image": "nvcr.io/nvidia/tensorflow:19.05-py3", "job.maxSteps": "50000"}  # fmt: skip


class ConfigError(Exception):
    """Everything that is wrong with one stack file; the text is for the person who wrote it."""


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
        raise ValueError(f"'{value}' is not a full image reference; for example {EXAMPLES['container.image']}")
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
    router: StrictInt | None = None
    private_vlan: StrictInt | None = None

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
    checkpoint_steps: Annotated[StrictInt, Field(ge=1)]


class _File(_Section):
    cluster: Cluster
    container: Container
    job: Job


@dataclass(frozen=True)
class Stack:
    """One stack file, checked and complete."""

    name: str
    cluster: Cluster
    container: Container
    job: Job
    origins: tuple[tuple[str, str, str], ...]
    """For every value its path, the value and where it came from."""


def parse(stack: str, written: Mapping[str, Any], *, ordering: bool = False) -> Stack:
    """Return the checked stack.

    Args:
        written: the ``microcluster:`` part of the stack file, by section.
        ordering: whether things are about to be ordered; a preview may hold the documentation's address.

    Raises:
        ConfigError: with every problem, its path and a suggestion.
    """
    complete, reasons = _complete(written)
    problems = _rule_problems(written, ordering=ordering)
    try:
        parsed = _File.model_validate(complete)
    except ValidationError as error:
        problems = [_explain_problem(one) for one in error.errors()] + problems
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        lines = "\n".join(f"  {line}" for line in sorted(set(problems)))
        raise ConfigError(f"stack {stack}: {count} in stacks/Pulumi.{stack}.yaml, nothing was ordered\n{lines}")
    return Stack(stack, parsed.cluster, parsed.container, parsed.job, tuple(_origins(parsed, written, reasons)))


def read_file(stack: str) -> dict[str, Any]:
    """Return the ``microcluster:`` part of a stack file by section, for verbs that run outside Pulumi."""
    path = STACKS / f"Pulumi.{stack}.yaml"
    if not path.is_file():
        names = ", ".join(sorted(file.name.split(".")[1] for file in STACKS.glob("Pulumi.*.yaml")))
        raise ConfigError(f"There is no stack '{stack}': stacks/{path.name} does not exist. Stacks: {names}.")
    values = (yaml.safe_load(path.read_text()) or {}).get("config") or {}
    return {key.partition(":")[2]: value for key, value in values.items() if key.startswith(f"{NAMESPACE}:")}


def explain(stack: str) -> list[tuple[str, str, str]]:
    """Return ``(path, value, origin)`` for every value of a stack."""
    return list(parse(stack, read_file(stack)).origins)


def home() -> Path:
    """Return the folder of everything that belongs to this user."""
    return Path(os.environ.get("MICROCLUSTER_HOME") or "~/.microcluster").expanduser().absolute()


def expand(path: str) -> Path:
    """Return a path of a stack file with ``~`` and ``$MICROCLUSTER_HOME`` filled in."""
    return Path(path.replace("$MICROCLUSTER_HOME", str(home()))).expanduser()


def _complete(written: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Fill in what follows from other values, and say why; what is invalid is left for the validation."""
    sections = {name: dict(value) if isinstance(value, Mapping) else value for name, value in written.items()}
    cluster, job = sections.get("cluster"), sections.get("job")
    reasons: dict[str, str] = {}

    def follow(section: str, values: Any, key: str, value: Any, reason: str) -> None:
        if isinstance(values, dict) and key not in values:
            values[key] = value
            reasons[f"{section}.{key}"] = reason

    if isinstance(cluster, dict) and "image" not in cluster:
        follow("cluster", cluster, "os", catalog.newest_system(), f"newest system of the catalogue of {catalog.AS_OF}")
    tiny = isinstance(job, dict) and job.get("model") == "transformer-tiny"
    flavor = catalog.FLAVORS.get(str(cluster.get("flavor"))) if isinstance(cluster, dict) else None
    mixed = flavor is not None and flavor.gpu == "V100" and not tiny
    follow("job", job, "dataset", "debian-en-de" if tiny else "wmt16-en-de", "follows from job.model")
    follow("job", job, "precision", "mixed" if mixed else "fp32", "follows from cluster.flavor and job.model")
    precision = job.get("precision") if isinstance(job, dict) else None
    batch = 16 if tiny else 256 if precision == "mixed" else 128
    follow("job", job, "batchPerGpu", batch, "follows from job.model and job.precision (16 bits fit twice as much)")
    follow("job", job, "evalSteps", 100 if tiny else 4001, "follows from job.model")
    follow("job", job, "checkpointSteps", 100 if tiny else 2000, "follows from job.model")
    return sections, reasons


def _rule_problems(written: Mapping[str, Any], *, ordering: bool) -> list[str]:
    """Check what concerns several values at once; values of the wrong type are the validation's business."""
    cluster = written.get("cluster")
    if not isinstance(cluster, Mapping):
        return []
    problems = []
    flavor = catalog.FLAVORS.get(str(cluster.get("flavor")))
    datacenter = cluster.get("datacenter")
    if flavor and datacenter in catalog.DATACENTERS and datacenter not in flavor.datacenters:
        places, offered = ", ".join(flavor.datacenters), ", ".join(catalog.sold_in(str(datacenter)))
        problems.append(
            f"cluster/datacenter: {datacenter} does not sell {flavor.describe()}; sold in {places}. {datacenter} sells {offered}"
        )
    if flavor and not flavor.san:
        problems.append(
            f"cluster/flavor: {flavor.name} has local disks, which take no SAN data disk; use {flavor.name.replace('ACL', 'AC')}"
        )
    nodes, speed = cluster.get("nodes", 2), cluster.get("portSpeedMbps", 1000)
    if isinstance(nodes, int) and nodes > 1 and speed in catalog.PORT_SPEEDS_MBPS and speed < 1000:
        problems.append(
            f"cluster/portSpeedMbps: {speed} Mb/s between {nodes} nodes makes a 24 hour run last weeks; use 1000, or nodes: 1"
        )
    for one, other in (("os", "image"), ("router", "privateVlan")):
        if cluster.get(one) is not None and cluster.get(other) is not None:
            problems.append(f"cluster/{other}: cannot be given together with cluster/{one}; leave one of them out")
    if ordering and DOCUMENTATION_CIDR in (cluster.get("adminCidrs") or []):
        problems.append(
            f"cluster/adminCidrs: {DOCUMENTATION_CIDR} is the documentation's address; put in your own, as `curl ifconfig.me` shows it"
        )
    return problems


def _explain_problem(error: Any) -> str:
    location = [str(part) for part in error["loc"]]
    path, value = "/".join(location), error.get("input")
    if error["type"] == "extra_forbidden":
        known = _keys_at(location[:-1])
        near = difflib.get_close_matches(location[-1], known, n=1)
        return f"{path}: unknown key; " + (f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}")
    if error["type"] == "missing":
        example = EXAMPLES.get(".".join(location))
        return f"{path}: is required" + (f"; for example {example}" if example else "")
    if error["type"] == "value_error":
        return f"{path}: {error['ctx']['error']}"
    message = error["msg"].replace("Input should be", "should be")
    return f"{path}: {value!r} {message}"


def _keys_at(location: list[str]) -> list[str]:
    model: type[_Section] = _File
    for part in location:
        model = {"cluster": Cluster, "container": Container, "job": Job}.get(part, model)
    return [field.alias or name for name, field in model.model_fields.items()]


def _origins(parsed: _File, written: Mapping[str, Any], reasons: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    for section, values in parsed.model_dump(by_alias=True).items():
        for key, value in values.items():
            if key in written[section]:
                origin = "stack file"
            elif value is None:
                origin = "not set"
            else:
                origin = reasons.get(f"{section}.{key}", "default")
            yield f"{section}.{key}", str(value), origin
