"""Inputs of each Paperspace resource, for program and provider alike, and the names of resources in the account.

The owner mark stands in the name, the only text that everything in an account has.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic

from microcluster.accounts.paperspace import catalog
from microcluster.accounts.shared.spec import Limited, Mark, Spec
from microcluster.core.catalog.billing_rules import Prices
from microcluster.core.home import ZONE, Owner, owner_in_domain

KEPT = "kept-"
"""Prefix of the label of what outlives its stack; only the name of a resource can be changed."""
LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
"""Pattern of a label; a dot ends it."""


Name = Annotated[str, pydantic.StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$")]
"""A label of a host name."""
ObjectId = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]
PublicIp = Literal["static", "dynamic", "none"]


class InRegion(Spec):
    """Inputs of what stands in a region."""

    mark: Mark
    region: str
    """A slug: ``ny2``, ``ca1`` or ``ams1``."""


class LedgerSpec(InRegion, Limited):
    """The whole planned cluster, to be checked and priced before the first order."""

    stack: str
    machine_type: str
    template_id: ObjectId
    nodes: int = pydantic.Field(ge=1, le=64)
    disk_gb: int
    public_ip_type: PublicIp = "dynamic"
    drive_gb: int | None = None
    """The size of the shared drive; None without one."""

    def prices(self) -> Prices:
        """Price the cluster by the list, which has every size that a stack file may name."""
        return catalog.prices(self.machine_type, self.nodes, self.disk_gb, self.public_ip_type, self.drive_gb)


class NetworkSpec(InRegion):
    """A private network of one region; the service chooses its addresses."""

    name: Name
    """Label that is unique among the stack's networks; the account's name adds stack and mark."""
    keep: bool = False
    """Leave it when the stack is destroyed; a drive that is kept needs its network."""


class DriveSpec(InRegion):
    """A network drive that the machines of one private network can mount."""

    name: Name
    size_gb: int
    network_id: ObjectId
    keep: bool = False
    """Leave it, with what is on it, when the stack is destroyed."""


class MachineSpec(InRegion):
    """One hourly machine, ordered once, with a startup script of its own."""

    hostname: Name
    machine_type: str
    template_id: ObjectId
    disk_gb: int
    network_id: ObjectId
    public_key: str
    """The stack's public ssh key, which may log in as ``paperspace``; the host key follows from its private part."""
    public_ip_type: PublicIp = "dynamic"

    @pydantic.field_validator("public_key")
    @classmethod
    def _public(cls, line: str) -> str:
        if "PRIVATE" in line or not line.startswith("ssh-ed25519 ") or not line.strip().isprintable():
            raise ValueError("is no public key line such as 'ssh-ed25519 AAAA...'")
        return line


@dataclass(frozen=True)
class Named:
    """A name that was read: ``kept-data.pair-1f3a9c42.microcluster``."""

    label: str
    """Label that is unique among the stack's resources of this kind, for example ``data``."""
    owner: Owner
    is_kept: bool = False


def full_name(label: str, owner: Owner, *, keep: bool = False) -> str:
    """Write the name of something in the account."""
    return f"{KEPT if keep else ''}{label}.{owner}.{ZONE}"


def read_name(name: Any) -> Named | None:
    """Read a name; None for everything that no stack of microcluster has named."""
    label, _, domain = str(name or "").partition(".")
    owner = owner_in_domain(domain)
    if owner is None or not re.fullmatch(LABEL, label):
        return None
    return Named(label.removeprefix(KEPT), owner, label.startswith(KEPT))


def owner_of(name: Any) -> Owner | None:
    """Read from a name whose it is."""
    found = read_name(name)
    return found.owner if found else None
