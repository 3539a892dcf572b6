"""A cluster at SoftLayer: guests on one private network, each with its container."""

import pulumi

from components.cluster import (
    TrainingCluster,
    TrainingClusterArgs,
    cluster_facts_of,
    container_of,
    hostnames,
    image_facts_of,
)
from components.softlayer.container import TrainingContainer, TrainingContainerArgs
from components.softlayer.image import TrainingImage, TrainingImageArgs
from components.softlayer.network import PrivateNetwork, PrivateNetworkArgs
from components.softlayer.node import GpuNode, GpuNodeArgs, hardware_args
from microcluster.config import Owner, Stack
from providers.softlayer.pulumi_resources import Ledger, LedgerArgs, SshKey, SshKeyArgs, owner_label


class Cluster(TrainingCluster):
    """Guests with a data volume and the training container."""

    def __init__(self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        stack, owner = args.stack, args.owner
        super().__init__(name, stack, opts)
        child = pulumi.ResourceOptions(parent=self)
        ledger = Ledger(f"{name}-ledger", ledger_args(stack, owner), child)
        # Everything depends on the ledger: it checks the account before the first order, and is deleted last.
        after = pulumi.ResourceOptions(parent=self, depends_on=[ledger])
        label = owner_label(stack.name, owner.mark)
        key = SshKey(f"{name}-key", SshKeyArgs(owner.mark, label, owner.public_key), after)
        network = PrivateNetwork(f"{name}-network", network_args(stack, owner, ledger.backend_router_id), after)
        nodes = [
            GpuNode(f"{name}-{host}", GpuNodeArgs(stack.name, owner, host, stack.cluster, key.id, network), after)
            for host in hostnames(stack)
        ]
        hosts = pulumi.Output.all(*(node.host for node in nodes))
        container = container_of(stack)
        image = TrainingImage(f"{name}-image", TrainingImageArgs(nodes, image_facts_of(stack, owner)), child)
        containers = [
            TrainingContainer(f"{name}-{host}-container", TrainingContainerArgs(node, image, container, owner), child)
            for host, node in zip(hostnames(stack), nodes, strict=True)
        ]
        self.facts = hosts.apply(lambda known: cluster_facts_of(stack, owner, tuple(known)))
        self.price_per_hour, self.price_source = ledger.price_per_hour, ledger.price_source
        self.machine_ids = [node.guest.id for node in nodes]
        self.ready = [one.ready for one in containers]
        self.register_outputs({"pricePerHour": self.price_per_hour})


def ledger_args(stack: Stack, owner: Owner) -> LedgerArgs:
    """Return the whole order, which the account checks and prices before any part is ordered."""
    cluster = stack.cluster
    return LedgerArgs(
        mark=owner.mark,
        stack=stack.name,
        nodes=cluster.nodes,
        hardware=hardware_args(
            cluster,
            str(cluster.router) if cluster.router else None,
            str(cluster.private_vlan) if cluster.private_vlan else None,
        ),
    )


def network_args(stack: Stack, owner: Owner, router_id: pulumi.Input[str]) -> PrivateNetworkArgs:
    """Return the network on the stack file's VLAN, else behind the router that the ledger chose."""
    cluster = stack.cluster
    if cluster.private_vlan:
        return PrivateNetworkArgs(owner.mark, cluster.admin_cidrs, private_vlan_id=str(cluster.private_vlan))
    return PrivateNetworkArgs(owner.mark, cluster.admin_cidrs, backend_router_id=router_id)
