"""A machine's inputs."""

from typing import Annotated, Literal

import pydantic

from core.catalog import paperspace as catalog
from providers.grpc.properties import MARK_PATTERN, Spec
from providers.paperspace.names import KEPT

LONGEST_SCRIPT = 12_000
"""Bytes: scripts of the older API could have 16 KB, and ours begins with some of its own."""

Mark = Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]


def _not_kept(name: str) -> str:
    if name.startswith(KEPT):
        raise ValueError(f"begins with {KEPT}, which is put before the name of what stays")
    return name


Name = Annotated[
    str, pydantic.StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$"), pydantic.AfterValidator(_not_kept)
]
"""A label of a host name."""
ObjectId = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]


def sold(what: str, value: object, choices: object) -> None:
    """Refuse what the price list does not know: it could be ordered at any price."""
    if value not in choices:
        known = ", ".join(str(each) for each in choices)
        raise ValueError(f"{value} is no {what} of the price list of {catalog.AS_OF}; it has {known}")


class InRegion(Spec):
    """Inputs of what stands in a region."""

    mark: Mark
    region: str

    @pydantic.field_validator("region")
    @classmethod
    def _known_region(cls, region: str) -> str:
        sold("region", region, catalog.REGIONS)
        return region


class MachineSpec(InRegion):
    """One machine."""

    hostname: Name
    machine_type: str
    template_id: ObjectId
    disk_gb: int
    network_id: ObjectId
    public_key: str
    public_ip_type: Literal["static", "dynamic", "none"] = "dynamic"
    startup_script: str = ""

    @pydantic.field_validator("machine_type")
    @classmethod
    def _known_type(cls, label: str) -> str:
        sold("machine type", label, catalog.MACHINE_TYPES)
        return label

    @pydantic.field_validator("disk_gb")
    @classmethod
    def _known_disk(cls, size: int) -> int:
        sold("disk size", size, catalog.DISKS)
        return size

    @pydantic.field_validator("public_key")
    @classmethod
    def _public(cls, line: str) -> str:
        if "PRIVATE" in line or not line.startswith("ssh-ed25519 ") or not line.strip().isprintable():
            raise ValueError("is no public key line such as 'ssh-ed25519 AAAA...'")
        return line

    @pydantic.field_validator("startup_script")
    @classmethod
    def _short(cls, text: str) -> str:
        if len(text.encode()) > LONGEST_SCRIPT:
            raise ValueError(f"is longer than {LONGEST_SCRIPT} bytes")
        return text
