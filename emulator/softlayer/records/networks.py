"""Keys, security groups, VLANs and volumes, as they are kept on disk."""

from dataclasses import dataclass, field


@dataclass
class SshKey:
    """A public key of the account."""

    id: int
    label: str
    key: str
    fingerprint: str
    notes: str
    created: float
    modified: float | None = None


@dataclass
class GroupRule:
    """One rule of a security group; its remote is a network, another group, or anything."""

    id: int
    direction: str
    ethertype: str = "IPv4"
    protocol: str | None = None
    port_min: int | None = None
    port_max: int | None = None
    remote_ip: str | None = None
    remote_group_id: int | None = None
    created: float = 0.0
    modified: float | None = None


@dataclass
class SecurityGroup:
    """A security group with its rules."""

    id: int
    name: str
    description: str
    created: float
    modified: float | None = None
    rules: list[GroupRule] = field(default_factory=list)


@dataclass
class Vlan:
    """A VLAN with one subnet; an automatic one exists while guests are behind its router."""

    id: int
    number: int
    router_id: int
    private: bool
    subnet_id: int
    cidr: str
    network: int  # which of the settings' private subnets; 0 for the public one
    name: str = ""
    tags: list[str] = field(default_factory=list)
    billing_item_id: int | None = None  # only of an ordered VLAN, which stays until it is cancelled


@dataclass
class Volume:
    """A block volume."""

    id: int
    billing_item_id: int
    username: str
    datacenter: str
    capacity_gb: int
    created: float
    notes: str = ""
