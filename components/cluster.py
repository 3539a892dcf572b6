"""The cluster: GPU nodes on one private network, each with its container."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pulumi

from components.container import TrainingContainer, TrainingContainerArgs
from components.image import TrainingImage, TrainingImageArgs
from components.network import PrivateNetwork, PrivateNetworkArgs
from components.node import GpuNode, GpuNodeArgs, hardware_args
from microcluster.config import Owner, Stack
from microcluster.home import Home
from microcluster.jobs.cluster_facts import ClusterFacts, Host
from microcluster.jobs.cluster_facts import Container as JobContainer
from microcluster.jobs.kind import kind_of
from providers.softlayer.pulumi_resources import Ledger, LedgerArgs, SshKey, SshKeyArgs, owner_label

REGISTRY_KEY = "ngc_key"
"""The registry's key file, beside the account's credentials or in the home, unless the stack file names another."""


@dataclass(frozen=True)
class TrainingClusterArgs:
    """The checked stack and who owns it."""

    stack: Stack
    owner: Owner


class TrainingCluster(pulumi.ComponentResource):
    """GPU nodes on one private network, ready to run ranks."""

    facts: pulumi.Output[ClusterFacts]
    """Hosts in rank order."""
    price_per_hour: pulumi.Output[str]
    price_source: pulumi.Output[str]
    guest_ids: list[pulumi.Output[str]]
    ready: list[pulumi.Resource]
    """Resources that a job waits for."""

    def __init__(self, name: str, args: TrainingClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:TrainingCluster", name, {}, opts)
        stack, owner = args.stack, args.owner
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
        self.guest_ids = [node.guest.id for node in nodes]
        self.ready = [one.ready for one in containers]
        self.register_outputs({"pricePerHour": self.price_per_hour})


def hostnames(stack: Stack) -> list[str]:
    """Return the nodes' host names in rank order; the first one is the launcher."""
    return [f"gpu-{rank}" for rank in range(stack.cluster.nodes)]


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


def container_of(stack: Stack) -> JobContainer:
    """Return the container for the remote steps."""
    container, key_file = stack.container, _registry_key_file(stack)
    return JobContainer(
        container.name,
        container.image,
        ssh_port=container.ssh_port,
        registry_key_file=str(key_file) if key_file else None,
        trainer=stack.trainer,
        kind=stack.job.kind,
        additions=kind_of(stack.job.kind).additions(stack.job),
    )


def _registry_key_file(stack: Stack) -> Path | None:
    """Return the registry's key file: the named one, else the account's, else the user's."""
    if stack.container.registry_key_file:
        return Home.of().expand(stack.container.registry_key_file)
    beside = [Path(stack.account_config_file).with_name(REGISTRY_KEY)] if stack.account_config_file else []
    return next((file for file in (*beside, Home.of().root / REGISTRY_KEY) if file.exists()), None)


def image_facts_of(stack: Stack, owner: Owner) -> ClusterFacts:
    """Return the facts that image distribution needs, without the hosts."""
    return ClusterFacts(
        stack=stack.name,
        mark=owner.mark,
        key_file=owner.key_file,
        rank_key_file=owner.rank_key_file,
        container=container_of(stack),
    )


def cluster_facts_of(stack: Stack, owner: Owner, hosts: tuple[Host, ...]) -> ClusterFacts:
    """Return the facts that every verb on the running cluster needs."""
    hardware = stack.cluster.hardware
    return replace(
        image_facts_of(stack, owner),
        hosts=hosts,
        account_config_file=stack.account_config_file,
        slots=hardware.gpus,
        gpu=hardware.gpu,
        flavor=hardware.name,
        port_speed_mbps=stack.cluster.port_speed_mbps,
        data_disk_gb=stack.cluster.data_disk_gb,
    )
