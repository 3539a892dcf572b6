"""What the clusters of all accounts have in common: their arguments, their outputs and their facts."""

from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import pulumi

from core.home import Home
from microcluster.accounts.registry import account_of
from microcluster.config import Container, Owner, Stack
from microcluster.jobs.cluster_facts import ClusterFacts, Host
from microcluster.jobs.cluster_facts import Container as JobContainer
from microcluster.jobs.kind import kind_of

REGISTRY_KEY = "ngc_key"
"""The registry's key file, beside the account's credentials or in the home, unless the stack file names another."""


@dataclass(frozen=True)
class TrainingClusterArgs:
    """The checked stack and who owns it."""

    stack: Stack
    owner: Owner


class TrainingCluster(pulumi.ComponentResource):
    """Nodes with GPUs on one private network, ready to run ranks; the module of each account has its own."""

    facts: pulumi.Output[ClusterFacts]
    """Hosts in rank order."""
    price_per_hour: pulumi.Output[str]
    price_source: pulumi.Output[str]
    billed: str
    """What is billed by the hour, and what by the month."""
    machine_ids: list[pulumi.Output[str]]
    ready: list[pulumi.Resource]
    """Resources that a job waits for."""

    def __init__(self, name: str, stack: Stack, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:TrainingCluster", name, {}, opts)
        self.billed = account_of(stack.cluster.account).billing(stack.cluster)


def declare_cluster(name: str, args: TrainingClusterArgs) -> TrainingCluster:
    """Declare the cluster in the stack's account."""
    return import_module(f"components.{args.stack.cluster.account}").Cluster(name, args)


def hostnames(stack: Stack) -> list[str]:
    """Return the nodes' host names in rank order; the first one is the launcher."""
    return [f"gpu-{rank}" for rank in range(stack.cluster.nodes)]


def container_of(stack: Stack) -> JobContainer | None:
    """Return the container for the remote steps, or None where the machines run none."""
    container = stack.container
    if container is None:
        return None
    key_file = _registry_key_file(stack, container)
    return JobContainer(
        container.name,
        container.image,
        ssh_port=container.ssh_port,
        registry_key_file=str(key_file) if key_file else None,
        trainer=stack.trainer,
        kind=stack.job.kind,
        additions=kind_of(stack.job.kind).additions(stack.job),
    )


def _registry_key_file(stack: Stack, container: Container) -> Path | None:
    """Return the registry's key file: the named one, else the account's, else the user's."""
    if container.registry_key_file:
        return Home.of().expand(container.registry_key_file)
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
        account=stack.cluster.account,
        account_config_file=stack.account_config_file,
        slots=hardware.gpus,
        gpu=hardware.gpu,
        flavor=hardware.name,
        **account_of(stack.cluster.account).facts(stack.cluster),
    )
