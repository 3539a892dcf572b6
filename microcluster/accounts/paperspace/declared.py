"""Pulumi resources of Paperspace, with their outputs, as a program declares them."""

import pulumi

from microcluster.accounts.paperspace.specs import DriveSpec, LedgerSpec, MachineSpec, NetworkSpec
from microcluster.accounts.shared.declared import Declared


class Ledger(Declared):
    """The account as this stack uses it: checked before the first order, proven clean after the last deletion."""

    TOKEN, SPEC = "paperspace:index:Ledger", LedgerSpec
    price_per_hour: pulumi.Output[str]
    """Price of the whole cluster while it is on, as a decimal in text: machines, disks, addresses, network and drive."""
    price_source: pulumi.Output[str]
    """Dated price list that the price comes from: the API shows no price."""


class PrivateNetwork(Declared):
    """A private network, known to the machines by its ``id``."""

    TOKEN, SPEC = "paperspace:index:PrivateNetwork", NetworkSpec
    subnet: pulumi.Output[str]
    """Address range of the network, for example ``10.64.21.0/24``."""


class SharedDrive(Declared):
    """A shared drive. Its password is no output: ``microcluster.accounts.paperspace.account`` reads it when it is needed."""

    TOKEN, SPEC = "paperspace:index:SharedDrive", DriveSpec
    address: pulumi.Output[str]
    """Address of the drive's server on the private network."""
    share: pulumi.Output[str]
    username: pulumi.Output[str]


class Machine(Declared):
    """A machine, ready: running, addresses known."""

    TOKEN, SPEC = "paperspace:index:Machine", MachineSpec
    public_ip: pulumi.Output[str]
    """Absent if it was ordered without one."""
    private_ip: pulumi.Output[str]
    host_key: pulumi.Output[str]
    """The public part of the ssh host key that its startup script writes."""
    rental: pulumi.Output[str]
    """The id of the rental that it belongs to."""
