"""The Pulumi classes of the provider's resources, for the program's side of the wire."""

from dataclasses import dataclass

import pulumi

from providers.grpc.pulumi_base import VendorResource, props


@dataclass(frozen=True)
class LedgerArgs:
    """What the whole cluster will be, so that it can be checked and priced before the first order."""

    mark: pulumi.Input[str]
    stack: pulumi.Input[str]
    region: pulumi.Input[str]
    """A slug: ``ny2``, ``ca1`` or ``ams1``."""
    machine_type: pulumi.Input[str]
    template_id: pulumi.Input[str]
    nodes: pulumi.Input[int]
    disk_gb: pulumi.Input[int]
    public_ip_type: pulumi.Input[str] = "dynamic"
    """``static``, ``dynamic`` or ``none``."""
    drive_gb: pulumi.Input[int] | None = None
    """The size of the shared drive; None without one."""


@dataclass(frozen=True)
class PrivateNetworkArgs:
    """A private network of one region; the service chooses its addresses."""

    mark: pulumi.Input[str]
    name: pulumi.Input[str]
    """What tells it from the stack's other networks; stack and mark are added in the account."""
    region: pulumi.Input[str]
    keep: pulumi.Input[bool] = False
    """Leave it when the stack is destroyed; a drive that is kept needs its network."""


@dataclass(frozen=True)
class SharedDriveArgs:
    """A network drive that the machines of one private network can mount."""

    mark: pulumi.Input[str]
    name: pulumi.Input[str]
    region: pulumi.Input[str]
    size_gb: pulumi.Input[int]
    network_id: pulumi.Input[str]
    keep: pulumi.Input[bool] = False
    """Leave it, with what is on it, when the stack is destroyed."""


@dataclass(frozen=True)
class MachineArgs:
    """One hourly machine, ordered once, with a startup script of its own."""

    mark: pulumi.Input[str]
    hostname: pulumi.Input[str]
    region: pulumi.Input[str]
    machine_type: pulumi.Input[str]
    template_id: pulumi.Input[str]
    disk_gb: pulumi.Input[int]
    network_id: pulumi.Input[str]
    public_key: pulumi.Input[str]
    """The stack's public ssh key, which may log in as ``paperspace``; the host key follows from its private part."""
    public_ip_type: pulumi.Input[str] = "dynamic"
    startup_script: pulumi.Input[str] = ""
    """What root's bash runs at the first boot, after keys and host name are set; no secrets."""


class Ledger(VendorResource):
    """The account as this stack uses it: checked before the first order, proven clean after the last deletion."""

    account_id: pulumi.Output[str]
    endpoint: pulumi.Output[str]
    username: pulumi.Output[str]
    price_per_hour: pulumi.Output[str]
    """Of the whole cluster while it is on, a decimal as text; disks, addresses, network and drive are in it."""
    price_source: pulumi.Output[str]
    """Which dated price list says so: the API shows no price."""
    per_month: pulumi.Output[str]
    """At most so much of it a month is for disks, addresses, network and drive; each is billed until it is deleted."""
    currency: pulumi.Output[str]

    def __init__(self, name: str, args: LedgerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("account_id", "endpoint", "username", "price_per_hour", "price_source", "per_month", "currency")
        super().__init__("paperspace:index:Ledger", name, props(args, outputs), opts)


class PrivateNetwork(VendorResource):
    """A private network, known to the machines by its ``id``."""

    subnet: pulumi.Output[str]
    """For example ``10.64.21.0/24``."""
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: PrivateNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("paperspace:index:PrivateNetwork", name, props(args, ("subnet", "account_id")), opts)


class SharedDrive(VendorResource):
    """A shared drive. Its password is no output: ``providers.paperspace.opened_account`` reads it when it is needed."""

    address: pulumi.Output[str]
    """Of the drive's server on the private network."""
    share: pulumi.Output[str]
    username: pulumi.Output[str]
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: SharedDriveArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("address", "share", "username", "account_id")
        super().__init__("paperspace:index:SharedDrive", name, props(args, outputs), opts)


class Machine(VendorResource):
    """A machine, ready: running, addresses known."""

    public_ip: pulumi.Output[str]
    """Absent if it was ordered without one."""
    private_ip: pulumi.Output[str]
    host_key: pulumi.Output[str]
    """The public part of the ssh host key that its startup script writes."""
    price_per_hour: pulumi.Output[str]
    """Of the machine with its disk and address, a decimal as text."""
    account_id: pulumi.Output[str]

    def __init__(self, name: str, args: MachineArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = ("public_ip", "private_ip", "host_key", "price_per_hour", "account_id")
        super().__init__("paperspace:index:Machine", name, props(args, outputs), opts)
