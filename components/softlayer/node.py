"""A node: one GPU guest, prepared so that containers can run on it."""

from dataclasses import dataclass

import pulumi

from components.softlayer.network import PrivateNetwork
from components.softlayer.storage import DataVolume, DataVolumeArgs
from components.steps import step
from microcluster.accounts.softlayer import Cluster
from microcluster.config import Owner
from microcluster.jobs.cluster_facts import ClusterFacts, Host
from providers.softlayer.pulumi_resources import HardwareArgs, VirtualGuest, VirtualGuestArgs, owner_domain, owner_tags


@dataclass(frozen=True)
class GpuNodeArgs:
    """``hardware`` is the stack's cluster section; ``ssh_key_id`` is the owner's key in the account."""

    stack: str
    owner: Owner
    hostname: str
    hardware: Cluster
    ssh_key_id: pulumi.Input[str]
    network: PrivateNetwork


class GpuNode(pulumi.ComponentResource):
    """A guest with GPUs, a driver, a container runtime and a mounted data volume."""

    host: pulumi.Output[Host]
    facts: pulumi.Output[ClusterFacts]
    """The facts for a step on this node alone."""
    guest: VirtualGuest
    volume: DataVolume

    def __init__(self, name: str, args: GpuNodeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:GpuNode", name, {}, opts)
        # Never two guests of one name at a time: quota, and adoption by mark needs a unique name.
        alone = pulumi.ResourceOptions(parent=self, delete_before_replace=True)
        self.guest = VirtualGuest(f"{name}-guest", guest_args(args), alone)
        guest = self.guest
        known = pulumi.Output.all(guest.id, guest.public_ip, guest.private_ip, guest.host_key)
        self.host = known.apply(lambda values: Host(args.hostname, *values))
        self.facts = self.host.apply(lambda host: node_facts_of(args, host))
        own = pulumi.ResourceOptions(parent=self, deleted_with=self.guest)
        stdin = self.facts.apply(lambda facts: facts.to_json())
        prepared = step(f"{name}-prepared", "prepare-node", stdin, [self.guest.id], own)
        volume = DataVolumeArgs(self.facts, self.guest, args.hardware.data_disk_gb, "/data", prepared)
        self.volume = DataVolume(f"{name}-data", volume, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"guestId": self.guest.id, "privateAddress": self.guest.private_ip})


def guest_args(args: GpuNodeArgs) -> VirtualGuestArgs:
    """Return the order of one node."""
    owner = args.owner
    return VirtualGuestArgs(
        mark=owner.mark,
        hostname=args.hostname,
        domain=owner_domain(args.stack, owner.mark),
        hardware=hardware_args(args.hardware, args.network.backend_router_id, args.network.private_vlan_id),
        ssh_key_ids=(args.ssh_key_id,),
        public_security_group_ids=(args.network.public_group_id,),
        private_security_group_ids=(args.network.private_group_id,),
        tags=owner_tags(args.stack, owner.mark),
    )


def hardware_args(
    cluster: Cluster, router_id: pulumi.Input[str] | None, vlan_id: pulumi.Input[str] | None
) -> HardwareArgs:
    """Return what the stack file says of every node, and the place on the private network."""
    return HardwareArgs(
        datacenter=cluster.datacenter,
        flavor=cluster.flavor,
        data_disks_gb=(cluster.data_disk_gb,),
        port_speed_mbps=cluster.port_speed_mbps,
        os=cluster.os,
        image_id=cluster.image,
        backend_router_id=router_id,
        private_vlan_id=vlan_id,
    )


def node_facts_of(args: GpuNodeArgs, host: Host) -> ClusterFacts:
    """Return the facts for the steps on one node."""
    return ClusterFacts(
        stack=args.stack,
        mark=args.owner.mark,
        hosts=(host,),
        key_file=args.owner.key_file,
        slots=args.hardware.hardware.gpus,
        gpu=args.hardware.hardware.gpu,
    )
