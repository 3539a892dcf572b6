"""The Pulumi classes of the provider's resources, for the program's side of the wire."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import pulumi

from providers.grpc.pulumi_base import Strings, VendorResource, camel_case, props
from providers.rental.owner_mark import owner_domain, owner_label, owner_tags  # noqa: F401 - the program finds them here


@dataclass(frozen=True)
class HardwareArgs:
    """What a guest is and where it stands."""

    datacenter: pulumi.Input[str]
    flavor: pulumi.Input[str]
    data_disks_gb: pulumi.Input[Sequence[int]]
    port_speed_mbps: pulumi.Input[int]
    os: pulumi.Input[str] | None = None
    image_id: pulumi.Input[str] | None = None
    backend_router_id: pulumi.Input[str] | None = None
    """The router to insist on; without it the Ledger chooses one and keeps it."""
    private_vlan_id: pulumi.Input[str] | None = None
    """The VLAN to insist on, which brings its router."""


@dataclass(frozen=True)
class LedgerArgs:
    """What the whole cluster will be, so that it can be checked and priced before the first order."""

    mark: pulumi.Input[str]
    stack: pulumi.Input[str]
    nodes: pulumi.Input[int]
    hardware: HardwareArgs


@dataclass(frozen=True)
class SshKeyArgs:
    """A public key for the order; only the stack's own is ever adopted or deleted."""

    mark: pulumi.Input[str]
    label: pulumi.Input[str]
    public_key: pulumi.Input[str]


@dataclass(frozen=True)
class RuleArgs:
    """What a security group lets through; rules only permit, and without any nothing passes."""

    direction: str
    """``ingress`` or ``egress``."""
    protocol: str | None = None
    """``tcp``, ``udp`` or ``icmp``; None is every protocol."""
    port_min: int | None = None
    port_max: int | None = None
    remote_cidr: str | None = None
    remote_self: bool = False
    """The remote side is any other member of this group."""


@dataclass(frozen=True)
class SecurityGroupArgs:
    """A firewall for guest interfaces."""

    mark: pulumi.Input[str]
    name: pulumi.Input[str]
    description: pulumi.Input[str]
    rules: Sequence[RuleArgs]


@dataclass(frozen=True)
class VirtualGuestArgs:
    """One hourly guest with SAN disks, ordered once."""

    mark: pulumi.Input[str]
    hostname: pulumi.Input[str]
    domain: pulumi.Input[str]
    hardware: HardwareArgs
    ssh_key_ids: Strings
    public_security_group_ids: Strings
    private_security_group_ids: Strings
    tags: Strings


class Ledger(VendorResource):
    """The account as this stack uses it: checked before the first order, proven clean after the last cancellation."""

    account_id: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    username: pulumi.Output[str]
    backend_router_id: pulumi.Output[str]
    """The one router behind which every guest is ordered; stable once chosen."""
    price_per_hour: pulumi.Output[str]
    """Of the whole cluster, a decimal as text."""
    price_source: pulumi.Output[str]
    """Who says so: the dated catalog in a preview, else the account."""
    currency: pulumi.Output[str]

    def __init__(self, name: str, args: LedgerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = (
            "account_id",
            "endpoint",
            "username",
            "backend_router_id",
            "price_per_hour",
            "price_source",
            "currency",
        )
        super().__init__("softlayer:index:Ledger", name, props(args, outputs), opts)


class SshKey(VendorResource):
    """A public key of the account."""

    key_id: pulumi.Output[str]
    fingerprint: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: SshKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("softlayer:index:SshKey", name, props(args, ("key_id", "fingerprint", "account_id")), opts)


class SecurityGroup(VendorResource):
    """A security group with all of its rules."""

    group_id: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: SecurityGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        named = props(args, ("group_id", "account_id")) | {"rules": [_rule(rule) for rule in args.rules]}
        super().__init__("softlayer:index:SecurityGroup", name, named, opts)


class VirtualGuest(VendorResource):
    """A guest, ready: provisioned, no transaction running, addresses known."""

    guest_id: pulumi.Output[str]
    public_ip: pulumi.Output[str]
    private_ip: pulumi.Output[str]
    host_key: pulumi.Output[str]
    """The public part of the ssh host key that its order carried."""
    price_per_hour: pulumi.Output[str]
    provision_date: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: VirtualGuestArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("guest_id", "public_ip", "private_ip", "host_key", "price_per_hour", "provision_date", "account_id")
        super().__init__("softlayer:index:VirtualGuest", name, props(args, outputs), opts)


def _rule(rule: RuleArgs) -> dict[str, Any]:
    members = {camel_case(field.name): getattr(rule, field.name) for field in fields(rule)}
    return {name: value for name, value in members.items() if value not in (None, False)}
