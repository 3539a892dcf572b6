"""A cluster at SoftLayer: guests with a data volume on one private network, each with the training container."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pulumi

from components.cluster import TrainingCluster, TrainingClusterArgs, step
from core.catalog import softlayer as catalog
from core.home import Owner as Mark
from microcluster.accounts.softlayer import Cluster as ClusterSection
from microcluster.config.stack import Owner, Stack
from microcluster.jobs.cluster_facts import ClusterFacts, Host
from providers.softlayer.specs import (
    GroupSpec,
    GuestSpec,
    KeySpec,
    Ledger,
    LedgerSpec,
    RuleSpec,
    SecurityGroup,
    SshKey,
    VirtualGuest,
)


class Cluster(TrainingCluster):
    """Guests with a data volume and the training container."""

    def __init__(self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        stack, owner = args.stack, args.owner
        super().__init__(name, stack, opts)
        child = pulumi.ResourceOptions(parent=self)
        ledger = Ledger(f"{name}-ledger", ledger_spec(stack, owner), child)
        # Everything depends on the ledger: it checks the account before the first order, and is deleted last.
        after = pulumi.ResourceOptions(parent=self, depends_on=[ledger])
        key = SshKey(f"{name}-key", key_spec(stack, owner), after)
        network = PrivateNetwork(f"{name}-network", network_args(stack, owner, ledger.backend_router_id), after)
        nodes = [
            GpuNode(f"{name}-{host}", GpuNodeArgs(stack.name, owner, host, stack.cluster, key.id, network), after)
            for host in stack.cluster.hostnames
        ]
        hosts = pulumi.Output.all(*(node.host for node in nodes))
        image = hosts.apply(lambda known: replace(args.image_facts, hosts=tuple(known)).to_json())
        tag = args.image_facts.container.tag
        mounted = pulumi.ResourceOptions(parent=self, depends_on=[node.mounted for node in nodes])
        brought = step(f"{name}-image-brought", "bring-image", image, [tag], mounted)
        self.facts = hosts.apply(lambda known: replace(args.facts, hosts=tuple(known)))
        self.price_per_hour, self.price_source = ledger.price_per_hour, ledger.price_source
        self.machine_ids = [node.guest.id for node in nodes]
        self.ready = [node.started(args.image_facts, brought) for node in nodes]
        self.register_outputs({"pricePerHour": self.price_per_hour})


@dataclass(frozen=True)
class PrivateNetworkArgs:
    """Either router or VLAN is fixed before the first order: guests behind different routers cannot talk."""

    mark: str
    admin_cidrs: Sequence[str]
    backend_router_id: pulumi.Input[str] | None = None
    private_vlan_id: str | None = None


class PrivateNetwork(pulumi.ComponentResource):
    """One backend router or VLAN and the two security groups of every node, one on each interface."""

    backend_router_id: pulumi.Input[str] | None
    private_vlan_id: str | None
    public_group_id: pulumi.Output[str]
    private_group_id: pulumi.Output[str]

    def __init__(self, name: str, args: PrivateNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:PrivateNetwork", name, {}, opts)
        child = pulumi.ResourceOptions(parent=self)
        public = SecurityGroup(
            f"{name}-public",
            GroupSpec(
                mark=args.mark,
                name=f"{name}-public",
                description="ssh from the operator",
                rules=public_rules(args.admin_cidrs),
            ),
            child,
        )
        private = SecurityGroup(
            f"{name}-private",
            GroupSpec(
                mark=args.mark,
                name=f"{name}-private",
                description="members and the vendor's services",
                rules=private_rules(),
            ),
            child,
        )
        self.backend_router_id, self.private_vlan_id = args.backend_router_id, args.private_vlan_id
        self.public_group_id, self.private_group_id = public.id, private.id
        self.register_outputs(
            {
                "backendRouterId": self.backend_router_id,
                "privateVlanId": self.private_vlan_id,
                "publicGroupId": self.public_group_id,
                "privateGroupId": self.private_group_id,
            }
        )


@dataclass(frozen=True)
class GpuNodeArgs:
    """``hardware`` is the stack's cluster section; ``ssh_key_id`` is the owner's key in the account."""

    stack: str
    owner: Owner
    hostname: str
    hardware: ClusterSection
    ssh_key_id: pulumi.Input[str]
    network: PrivateNetwork


class GpuNode(pulumi.ComponentResource):
    """A guest with GPUs, a driver, a container runtime, and the disk that is billed with it as a mounted file system."""

    host: pulumi.Output[Host]
    facts: pulumi.Output[ClusterFacts]
    """The facts for a step on this node alone."""
    guest: VirtualGuest
    mounted: pulumi.Resource

    def __init__(self, name: str, args: GpuNodeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:GpuNode", name, {}, opts)
        self._named = name
        # Never two guests of one name at a time: quota, and adoption by mark needs a unique name.
        alone = pulumi.ResourceOptions(parent=self, delete_before_replace=True)
        self.guest = VirtualGuest(f"{name}-guest", guest_spec(args), alone)
        guest = self.guest
        known = pulumi.Output.all(guest.id, guest.public_ip, guest.private_ip, guest.host_key)
        self.host = known.apply(lambda values: Host(args.hostname, *values))
        self.facts = self.host.apply(lambda host: node_facts_of(args, host))
        own = pulumi.ResourceOptions(parent=self, deleted_with=self.guest)
        stdin = self.facts.apply(lambda facts: facts.to_json())
        prepared = step(f"{name}-prepared", "prepare-node", stdin, [self.guest.id], own)
        disk = {"data_disk_gb": args.hardware.data_disk_gb, "mount_point": "/data"}
        with_disk = self.facts.apply(lambda facts: replace(facts, **disk).to_json())
        after = pulumi.ResourceOptions(parent=self, deleted_with=self.guest, depends_on=[prepared])
        self.mounted = step(f"{name}-data-mounted", "mount-volume", with_disk, [self.guest.id], after)
        self.register_outputs({"guestId": self.guest.id, "privateAddress": self.guest.private_ip})

    def started(self, image: ClusterFacts, brought: pulumi.Resource) -> pulumi.Resource:
        """Start the container in which its ranks run, with an sshd of its own on the private address.

        Args:
            image: the facts that say which container.
            brought: what brings its image to the node.
        """
        of_image = {"container": image.container, "rank_key_file": image.rank_key_file}
        stdin = self.facts.apply(lambda facts: replace(facts, **of_image).to_json())
        own = pulumi.ResourceOptions(parent=self, deleted_with=self.guest, depends_on=[brought])
        triggers = [self.guest.id, image.container.tag]
        return step(f"{self._named}-container-running", "start-container", stdin, triggers, own)


def key_spec(stack: Stack, owner: Owner) -> KeySpec:
    """Return the stack's own key."""
    return KeySpec(mark=owner.mark, label=Mark(stack.name, owner.mark).notes, public_key=owner.public_key)


def ledger_spec(stack: Stack, owner: Owner) -> LedgerSpec:
    """Return the whole order, which the account checks and prices before any part is ordered."""
    cluster = stack.cluster
    return LedgerSpec.declare(mark=owner.mark, stack=stack.name, nodes=cluster.nodes, **cluster.order())


def network_args(stack: Stack, owner: Owner, router_id: pulumi.Input[str]) -> PrivateNetworkArgs:
    """Return the network on the stack file's VLAN, else behind the router that the ledger chose."""
    cluster = stack.cluster
    if cluster.private_vlan:
        return PrivateNetworkArgs(owner.mark, cluster.admin_cidrs, private_vlan_id=str(cluster.private_vlan))
    return PrivateNetworkArgs(owner.mark, cluster.admin_cidrs, backend_router_id=router_id)


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
    mark, network = Mark(args.stack, args.owner.mark), args.network
    place = {"backend_router_id": network.backend_router_id, "private_vlan_id": network.private_vlan_id}
    return GuestSpec.declare(
        mark=mark.mark,
        hostname=args.hostname,
        domain=mark.domain,
        ssh_key_ids=(args.ssh_key_id,),
        public_security_group_ids=(args.network.public_group_id,),
        private_security_group_ids=(args.network.private_group_id,),
        tags=mark.tags,
        **args.hardware.order() | place,
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
