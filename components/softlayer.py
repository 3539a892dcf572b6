"""A cluster at SoftLayer: nodes on one private network, each a guest with GPUs, a SAN volume and the training container."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import Node, TrainingCluster, TrainingClusterArgs, completed, step
from microcluster.accounts.softlayer import catalog
from microcluster.accounts.softlayer.declared import Ledger, SecurityGroup, SshKey, VirtualGuest
from microcluster.accounts.softlayer.specs import GroupSpec, GuestSpec, KeySpec, LedgerSpec, RuleSpec
from microcluster.core.catalog.billing_rules import plain
from microcluster.jobs.cluster_facts import Container


class Cluster(TrainingCluster):
    """GPU nodes on a private network, each with the training container."""

    def __init__(self, name: str, args: TrainingClusterArgs) -> None:
        super().__init__(name, args)
        child = pulumi.ResourceOptions(parent=self)
        ledger = Ledger(f"{name}-ledger", LedgerSpec.declare(**args.whole_order), child)
        # Everything depends on the ledger: it checks the account before the first order, and is deleted last.
        after = pulumi.ResourceOptions(parent=self, depends_on=[ledger])
        key = SshKey(f"{name}-key", key_spec(args), after)
        network = PrivateNetwork(f"{name}-network", PrivateNetworkArgs(args, ledger.backend_router_id), after)
        nodes = [
            GpuNode(f"{name}-{host}", GpuNodeArgs(args, host, key.id, network), after)
            for host in args.stack.cluster.hostnames
        ]
        self.hold(ledger, nodes)
        image = TrainingImage(f"{name}-image", TrainingImageArgs(self, args.facts.container, nodes), child)
        self.ready = [
            TrainingContainer(
                f"{node.pulumi_resource_name}-container",
                TrainingContainerArgs(node, args.facts.container, image),
                pulumi.ResourceOptions(parent=node),
            ).running
            for node in nodes
        ]
        # Not before: the steps on a rented node would run again for it, and none of them reads it.
        self.facts = completed(self.facts, interface=catalog.PRIVATE_NETWORK)
        self.register_outputs({"pricePerHour": self.price_per_hour})


@dataclass(frozen=True)
class PrivateNetworkArgs:
    """The cluster, and the router behind which its ledger wants the guests."""

    cluster: TrainingClusterArgs
    router_id: pulumi.Input[str]


class PrivateNetwork(pulumi.ComponentResource):
    """The place of every node on the private network, and its two security groups, one on each interface.

    Its outputs in Pulumi's state are ``publicGroupId`` and ``privateGroupId``.
    """

    place: dict[str, Any]
    """Either router or VLAN is fixed before the first order: guests behind different routers cannot talk."""
    public_group_id: pulumi.Output[str]
    """Id of the security group that lets the operator's ssh in."""
    private_group_id: pulumi.Output[str]
    """Id of the security group that lets its members and the vendor's services in."""

    def __init__(self, name: str, args: PrivateNetworkArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("microcluster:index:PrivateNetwork", name, {}, opts)
        cluster, owner = args.cluster.stack.cluster, args.cluster.keys.owner
        # A VLAN of the stack file, which is in the order of each guest, has a router of its own.
        self.place = {} if cluster.private_vlan else {"backend_router_id": args.router_id}

        def group(side: str, description: str, rules: Sequence[RuleSpec]) -> pulumi.Output[str]:
            wanted = GroupSpec(mark=owner.mark, name=f"{name}-{side}", description=description, rules=rules)
            return SecurityGroup(f"{name}-{side}", wanted, pulumi.ResourceOptions(parent=self)).id

        self.public_group_id = group("public", "ssh from the operator", public_rules(cluster.admin_cidrs))
        self.private_group_id = group("private", "members and the vendor's services", private_rules())
        self.register_outputs({"publicGroupId": self.public_group_id, "privateGroupId": self.private_group_id})


@dataclass(frozen=True)
class GpuNodeArgs:
    """The cluster of a node, the node's name and network, and the id of the owner's key in the account."""

    cluster: TrainingClusterArgs
    hostname: str
    ssh_key_id: pulumi.Input[str]
    network: PrivateNetwork


class GpuNode(Node):
    """A GPU VM: the guest, its driver and container runtime, and the volume that is ordered with it.

    Its outputs in Pulumi's state are ``machineId`` and ``privateAddress``.
    """

    volume: "SanVolume"

    def __init__(self, name: str, args: GpuNodeArgs, opts: pulumi.ResourceOptions) -> None:
        super().__init__("GpuNode", name, opts)
        self.hold(VirtualGuest(f"{name}-guest", guest_spec(args), self.alone), args.hostname, args.cluster)
        prepared = self.step("prepared", "prepare-node", self.facts)
        facts = args.cluster.facts
        volume = SanVolumeArgs(self, facts.data_disk_gb, facts.mount_point, prepared)
        self.volume = SanVolume(f"{name}-data", volume, pulumi.ResourceOptions(parent=self))
        self.register_outputs({"machineId": self.machine.id, "privateAddress": self.machine.private_ip})


@dataclass(frozen=True)
class SanVolumeArgs:
    """The node whose guest has the disk, the disk's size and place in the file system, and the step that mounting waits for."""

    node: GpuNode
    size_gb: int
    mount_point: str
    prepared: pulumi.Resource


class SanVolume(pulumi.ComponentResource):
    """A SAN disk as a mounted file system; it is ordered, billed and cancelled with its guest, and has no id of its own.

    Its outputs in Pulumi's state are ``sizeGb``, ``mountPoint``, ``machineId`` of the guest, and ``pricePerHour``: dollars by
    the catalog, which are part of the guest's price.
    """

    mounted: pulumi.Resource
    """Step that makes the file system where there is none, and mounts it."""

    def __init__(self, name: str, args: SanVolumeArgs, opts: pulumi.ResourceOptions) -> None:
        price = plain(catalog.disk_per_hour(args.size_gb))
        known = {"sizeGb": args.size_gb, "mountPoint": args.mount_point, "pricePerHour": price}
        super().__init__("microcluster:index:SanVolume", name, known, opts)
        self.mounted = args.node.step("data-mounted", "mount-volume", args.node.facts, after=[args.prepared], part=self)
        self.register_outputs({**known, "machineId": args.node.machine.id})


@dataclass(frozen=True)
class TrainingImageArgs:
    """The cluster whose nodes need the image, the settings of its containers, and the nodes with their volumes."""

    cluster: TrainingCluster
    container: Container
    nodes: Sequence[GpuNode]


class TrainingImage(pulumi.ComponentResource):
    """The image of the containers: one node pulls and builds it, and the others have it from there.

    Its outputs in Pulumi's state are ``base``, the image of the stack file, and ``tag``, the name on the nodes of what is built on it.
    """

    brought: pulumi.Resource
    """Step after which every node has the image."""

    def __init__(self, name: str, args: TrainingImageArgs, opts: pulumi.ResourceOptions) -> None:
        known = {"base": args.container.image, "tag": args.container.tag}
        super().__init__("microcluster:index:TrainingImage", name, known, opts)
        own = pulumi.ResourceOptions(
            parent=self,
            depends_on=[node.volume.mounted for node in args.nodes],
            aliases=[pulumi.Alias(parent=args.cluster)],
        )
        self.brought = step(f"{name}-brought", "bring-image", args.cluster.facts, [args.container.tag], own)
        self.register_outputs(known)


@dataclass(frozen=True)
class TrainingContainerArgs:
    """The node of the container, its settings, and the image that it is started from."""

    node: GpuNode
    container: Container
    image: TrainingImage


class TrainingContainer(pulumi.ComponentResource):
    """The container on one node in which the ranks run; those of the other nodes reach it by ssh.

    Its outputs in Pulumi's state are ``name``, ``image``, ``sshPort`` and ``machineId``, the guest on which it runs.
    """

    running: pulumi.Resource
    """Step that starts the container, anew where the image is another one."""

    def __init__(self, name: str, args: TrainingContainerArgs, opts: pulumi.ResourceOptions) -> None:
        container = args.container
        known = {"name": container.name, "image": container.tag, "sshPort": container.ssh_port}
        super().__init__("microcluster:index:TrainingContainer", name, known, opts)
        facts = completed(args.node.facts, container=container)
        self.running = args.node.step(
            "container-running", "start-container", facts, container.tag, after=[args.image.brought], part=self
        )
        self.register_outputs({**known, "machineId": args.node.machine.id})


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
