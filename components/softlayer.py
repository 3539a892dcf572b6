"""A cluster at SoftLayer: guests with a data volume on one private network, each with the training container."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import Node, TrainingCluster, TrainingClusterArgs, completed, step
from microcluster.accounts.softlayer import catalog
from microcluster.accounts.softlayer.declared import Ledger, SecurityGroup, SshKey, VirtualGuest
from microcluster.accounts.softlayer.specs import GroupSpec, GuestSpec, KeySpec, LedgerSpec, RuleSpec


class Cluster(TrainingCluster):
    """Guests with a data volume and the training container."""

    def __init__(self, name: str, args: TrainingClusterArgs) -> None:
        super().__init__(name, args)
        child = pulumi.ResourceOptions(parent=self)
        ledger = Ledger(f"{name}-ledger", LedgerSpec.declare(**args.whole_order), child)
        # Everything depends on the ledger: it checks the account before the first order, and is deleted last.
        after = pulumi.ResourceOptions(parent=self, depends_on=[ledger])
        key = SshKey(f"{name}-key", key_spec(args), after)
        network = PrivateNetwork(f"{name}-network", args, ledger.backend_router_id, after)
        nodes = [
            GpuNode(f"{name}-{host}", GpuNodeArgs(args, host, key.id, network), after)
            for host in args.stack.cluster.hostnames
        ]
        self.hold(ledger, nodes)
        container, mounted = args.facts.container, [node.mounted for node in nodes]
        own = pulumi.ResourceOptions(parent=self, depends_on=mounted)
        brought = step(f"{name}-image-brought", "bring-image", self.facts, [container.tag], own)
        for node in nodes:
            held = completed(node.facts, container=container)
            node.ready = node.step("container-running", "start-container", held, container.tag, after=[brought])
        self.ready = [node.ready for node in nodes]
        # Not before: the steps on a rented node would run again for it, and none of them reads it.
        self.facts = completed(self.facts, interface=catalog.PRIVATE_NETWORK)
        self.register_outputs({"pricePerHour": self.price_per_hour})


class PrivateNetwork(pulumi.ComponentResource):
    """The place of every node on the private network, and its two security groups, one on each interface."""

    place: dict[str, Any]
    """Either router or VLAN is fixed before the first order: guests behind different routers cannot talk."""
    public_group_id: pulumi.Output[str]
    private_group_id: pulumi.Output[str]

    def __init__(
        self, name: str, args: TrainingClusterArgs, router_id: pulumi.Input[str], opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__("microcluster:index:PrivateNetwork", name, {}, opts)
        cluster = args.stack.cluster
        # A VLAN of the stack file, which is in the order of each guest, has a router of its own.
        self.place = {} if cluster.private_vlan else {"backend_router_id": router_id}

        def group(side: str, description: str, rules: Sequence[RuleSpec]) -> pulumi.Output[str]:
            wanted = GroupSpec(mark=args.keys.owner.mark, name=f"{name}-{side}", description=description, rules=rules)
            return SecurityGroup(f"{name}-{side}", wanted, pulumi.ResourceOptions(parent=self)).id

        self.public_group_id = group("public", "ssh from the operator", public_rules(cluster.admin_cidrs))
        self.private_group_id = group("private", "members and the vendor's services", private_rules())
        self.register_outputs({"publicGroupId": self.public_group_id, "privateGroupId": self.private_group_id})


@dataclass(frozen=True)
class GpuNodeArgs:
    """``ssh_key_id`` is the owner's key in the account."""

    cluster: TrainingClusterArgs
    hostname: str
    ssh_key_id: pulumi.Input[str]
    network: PrivateNetwork


class GpuNode(Node):
    """A guest with GPUs, a driver, a container runtime, and the disk that is billed with it as a mounted file system."""

    mounted: pulumi.Resource

    def __init__(self, name: str, args: GpuNodeArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("GpuNode", name, opts)
        self.hold(VirtualGuest(f"{name}-guest", guest_spec(args), self.alone), args.hostname, args.cluster)
        prepared = self.step("prepared", "prepare-node", self.facts)
        self.mounted = self.step("data-mounted", "mount-volume", self.facts, after=[prepared])
        self.register_outputs({"machineId": self.machine.id, "privateAddress": self.machine.private_ip})


def key_spec(args: TrainingClusterArgs) -> KeySpec:
    """Return the stack's own key."""
    owner = args.keys.owner
    return KeySpec(mark=owner.mark, label=owner.notes, public_key=args.keys.public_key)


def public_rules(admin_cidrs: Sequence[str]) -> tuple[RuleSpec, ...]:
    """Allow everything out, and ssh in from the operator."""
    port = {"protocol": "tcp", "port_min": 22, "port_max": 22}
    ssh = [RuleSpec(direction="ingress", remote_cidr=cidr, **port) for cidr in admin_cidrs]
    return (RuleSpec(direction="egress"), *ssh)


def private_rules() -> tuple[RuleSpec, ...]:
    """Allow everything out, and members and the vendor's services in."""
    services = [RuleSpec(direction="ingress", remote_cidr=cidr) for cidr in catalog.SERVICE_NETWORKS]
    return (RuleSpec(direction="egress"), RuleSpec(direction="ingress", remote_self=True), *services)


def guest_spec(args: GpuNodeArgs) -> GuestSpec:
    """Return the order of one node."""
    stack, network = args.cluster.stack, args.network
    owner = args.cluster.keys.owner
    return GuestSpec.declare(
        mark=owner.mark,
        hostname=args.hostname,
        domain=owner.domain,
        ssh_key_ids=(args.ssh_key_id,),
        public_security_group_ids=(network.public_group_id,),
        private_security_group_ids=(network.private_group_id,),
        tags=owner.tags,
        **stack.cluster.order() | network.place,
    )
