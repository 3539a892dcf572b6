"""The Pulumi classes of what stands beside the guests: volumes, VLANs, and what is only looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from providers.softlayer.resource_class import SoftLayerResource, Strings, props


@dataclass(frozen=True)
class BlockVolumeArgs:
    """A block volume on the SAN that outlives guests; monthly, so at least a whole month, unless hourly is asked for."""

    mark: pulumi.Input[str]
    name: pulumi.Input[str]
    """Unique among the volumes of the stack; it stands in the volume's notes, after the owner mark."""
    datacenter: pulumi.Input[str]
    size_gb: pulumi.Input[int]
    iops_per_gb: pulumi.Input[float] | None = None
    """An endurance tier: 0.25, 2, 4 or 10 operations a second and GB."""
    iops: pulumi.Input[int] | None = None
    """Performance storage with so many operations a second, instead of a tier."""
    hourly: pulumi.Input[bool] = False
    guest_ids: Strings = ()
    """The guests that may attach it; changed in place."""
    description: pulumi.Input[str] = ""
    """What a person adds to the notes; changed in place."""


@dataclass(frozen=True)
class VlanArgs:
    """A VLAN of one's own: unlike an automatic one it stays when no guest is on it, and costs until it is deleted."""

    mark: pulumi.Input[str]
    name: pulumi.Input[str]
    """At most eight characters: the account's name of it begins with the owner mark."""
    datacenter: pulumi.Input[str]
    space: pulumi.Input[str] = "PRIVATE"
    """``PRIVATE`` or ``PUBLIC``."""
    router_id: pulumi.Input[str] | None = None
    """The router to insist on; without it the account chooses one."""
    hourly: pulumi.Input[bool] = True


@dataclass(frozen=True)
class SubnetArgs:
    """A subnet that is there."""

    subnet_id: pulumi.Input[str]


@dataclass(frozen=True)
class RouterArgs:
    """A router that is there, by its id or its hostname."""

    router_id: pulumi.Input[str] | None = None
    hostname: pulumi.Input[str] | None = None
    """For example ``bcr01a.lon04``."""


@dataclass(frozen=True)
class ImageArgs:
    """An image template that this account may use, by its id or its GUID."""

    image_id: pulumi.Input[str] | None = None
    guid: pulumi.Input[str] | None = None


class BlockVolume(SoftLayerResource):
    """A block volume, provisioned, with its guests authorised. The CHAP password is read where it is used, never stored."""

    volume_id: pulumi.Output[str]
    order_id: pulumi.Output[str]
    username: pulumi.Output[str]
    """The account's name of the volume."""
    lun_id: pulumi.Output[str]
    target_address: pulumi.Output[str]
    """Where guests find it, over iSCSI."""
    billing: pulumi.Output[str]
    """How it is billed and for how much; in a preview by the catalogue."""
    ends: pulumi.Output[str]
    """When somebody's cancellation takes effect, if there is one."""
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: BlockVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("volume_id", "order_id", "username", "lun_id", "target_address", "billing", "ends", "account_id")
        super().__init__("softlayer:index:BlockVolume", name, props(args, outputs), opts)


class Vlan(SoftLayerResource):
    """A VLAN with a billing item of its own."""

    vlan_id: pulumi.Output[str]
    """What orders and ``privateVlanId`` take; the number below is not unique in an account."""
    vlan_number: pulumi.Output[int]
    router_id: pulumi.Output[str]
    router_hostname: pulumi.Output[str]
    subnets: pulumi.Output[Sequence[str]]
    """With their prefixes, as in ``10.112.7.0/24``."""
    billing: pulumi.Output[str]
    ends: pulumi.Output[str]
    """When somebody's cancellation takes effect, if there is one."""
    order_id: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: VlanArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("vlan_id", "vlan_number", "router_id", "router_hostname", "subnets", "billing", "ends", "order_id")
        super().__init__("softlayer:index:Vlan", name, props(args, (*outputs, "account_id")), opts)


class Subnet(SoftLayerResource):
    """A subnet, read."""

    subnet_id: pulumi.Output[str]
    network: pulumi.Output[str]
    """With its prefix."""
    netmask: pulumi.Output[str]
    gateway: pulumi.Output[str]
    kind: pulumi.Output[str]
    """``PRIMARY`` and the like."""
    space: pulumi.Output[str]
    usable_addresses: pulumi.Output[int]
    datacenter: pulumi.Output[str]
    vlan_id: pulumi.Output[str]
    vlan_number: pulumi.Output[int]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: SubnetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("subnet_id", "network", "netmask", "gateway", "kind", "space", "usable_addresses", "datacenter")
        named = props(args, (*outputs, "vlan_id", "vlan_number", "account_id"))
        super().__init__("softlayer:index:Subnet", name, named, opts)


class Router(SoftLayerResource):
    """A router, read: guests behind different ones cannot talk."""

    router_id: pulumi.Output[str]
    hostname: pulumi.Output[str]
    space: pulumi.Output[str]
    """``PRIVATE`` for a backend router, ``PUBLIC`` for a frontend one."""
    pod: pulumi.Output[str]
    datacenter: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: RouterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("router_id", "hostname", "space", "pod", "datacenter", "account_id")
        super().__init__("softlayer:index:Router", name, props(args, outputs), opts)


class Image(SoftLayerResource):
    """An image, read."""

    image_id: pulumi.Output[str]
    guid: pulumi.Output[str]
    name: pulumi.Output[str]
    is_public: pulumi.Output[bool]
    cloud_init: pulumi.Output[bool]
    """Whether its guests read their user data; the host keys of others are not known before the first connection."""
    boot_mode: pulumi.Output[str]
    """``HVM`` or ``PV``; GPU flavours boot HVM only."""
    size_gb: pulumi.Output[int]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: ImageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("image_id", "guid", "name", "is_public", "cloud_init", "boot_mode", "size_gb", "account_id")
        super().__init__("softlayer:index:Image", name, props(args, outputs), opts)
