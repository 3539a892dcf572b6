"""Pulumi resources of SoftLayer, with their outputs, as a program declares them."""

import pulumi

from microcluster.accounts.shared.declared import Declared
from microcluster.accounts.softlayer.specs import GroupSpec, GuestSpec, KeySpec, LedgerSpec


class VirtualGuest(Declared):
    """A guest, ready: provisioned, no transaction running, addresses known."""

    TOKEN, SPEC = "softlayer:index:VirtualGuest", GuestSpec
    public_ip: pulumi.Output[str]
    private_ip: pulumi.Output[str]
    host_key: pulumi.Output[str]
    """The public part of the ssh host key that its order carried."""
    provision_date: pulumi.Output[str]
    rental: pulumi.Output[str]
    """The id of the rental that it belongs to."""


class Ledger(Declared):
    """The account as this stack uses it: checked before the first order, proven clean after the last cancellation."""

    TOKEN, SPEC = "softlayer:index:Ledger", LedgerSpec
    backend_router_id: pulumi.Output[str]
    """The one router behind which every guest is ordered; stable once chosen."""
    price_per_hour: pulumi.Output[str]
    """Price of the whole cluster, as a decimal in text."""
    price_source: pulumi.Output[str]
    """Source of the price: the dated catalog in a preview, else the account."""


class SshKey(Declared):
    """A public key of the account."""

    TOKEN, SPEC = "softlayer:index:SshKey", KeySpec


class SecurityGroup(Declared):
    """A security group with all of its rules."""

    TOKEN, SPEC = "softlayer:index:SecurityGroup", GroupSpec
