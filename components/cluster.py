"""The base of a cluster and of its nodes in every account: arguments, outputs, facts and steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pulumi
from pulumi_command import local

from microcluster.config.rules_and_defaults import least_hours
from microcluster.config.sections import ContainerSection
from microcluster.config.stack import ConfigError, Stack, StackKeys
from microcluster.core.home import Home
from microcluster.core.key_file import KeyFileError
from microcluster.jobs.cluster_facts import ClusterFacts, Container, HostFacts, MachineLimits, Prediction
from microcluster.jobs.image import KEY_FILE, NGC, registry, registry_key, takes_key_alone
from microcluster.jobs.run_spec import decided

# `exec`: Pulumi stops only its direct child, which must be the verb itself and not a shell around it.
_FAB = "exec .venv/bin/fab"


@dataclass(frozen=True)
class TrainingClusterArgs:
    """The checked stack and who owns it, and the facts that follow before any address is known."""

    stack: Stack
    keys: StackKeys

    @cached_property
    def decided(self) -> ClusterFacts:
        """All that is known of cluster and run beforehand."""
        return decided(facts_of(self.stack, self.keys))

    @property
    def facts(self) -> ClusterFacts:
        """The facts of the cluster without the job, a change of which must not run a step on a node again."""
        of_job = {"job": None, "data": None, "tree": None, "run": None, "prediction": None}
        return replace(self.decided, **of_job, guard=None, lease_minutes=None)

    @property
    def whole_order(self) -> dict[str, Any]:
        """The inputs of the ledger of an account that sells, which checks and prices all of it before any part is ordered."""
        cluster, guard = self.stack.cluster, self.stack.guard
        limits = guard.in_account if guard else {}
        if "budget_cents" in limits:
            limits["least_hours"] = least_hours(cluster, self.stack.job)
        owner = self.keys.owner
        return {"mark": owner.mark, "stack": owner.stack, "nodes": cluster.nodes, **limits, **cluster.order()}


class Node(pulumi.ComponentResource):
    """A rented machine of a cluster, with the steps over ssh that go when it goes; the module of each account has its own."""

    machine: Any
    """Machine as the account's provider declares it."""
    host: pulumi.Output[HostFacts]
    facts: pulumi.Output[ClusterFacts]
    """Facts for a step on this node alone."""

    def __init__(self, kind: str, name: str, opts: pulumi.ResourceOptions) -> None:
        super().__init__(f"microcluster:index:{kind}", name, {}, opts)
        # Never two machines of one name at a time: quota, and adoption by mark needs a unique name.
        self.alone = pulumi.ResourceOptions(parent=self, delete_before_replace=True)

    def hold(self, machine: Any, hostname: str, args: TrainingClusterArgs) -> None:
        """Take its machine, whose addresses are known later."""
        self.machine = machine
        known = pulumi.Output.all(machine.id, machine.public_ip, machine.private_ip, machine.host_key)
        self.host = known.apply(lambda values: HostFacts(hostname, *values))
        self.facts = completed(replace(args.facts, container=None), hosts=(self.host,))

    def step(
        self,
        what: str,
        verb: str,
        facts: pulumi.Input[ClusterFacts],
        *more_triggers: pulumi.Input[str],
        after: Sequence[pulumi.Resource] = (),
        part: pulumi.ComponentResource | None = None,
    ) -> local.Command:
        """Declare that a step has run on this node, as a child of the part of the node that it makes."""
        own = pulumi.ResourceOptions(
            parent=part or self,
            deleted_with=self.machine,
            depends_on=after,
            # In states from before there were parts, the step is a child of the node.
            aliases=[pulumi.Alias(parent=self)] if part else None,
        )
        return step(f"{self.pulumi_resource_name}-{what}", verb, facts, [self.machine.id, *more_triggers], own)


class TrainingCluster(pulumi.ComponentResource):
    """Nodes with GPUs on one private network, ready to run ranks; the module of each account has its own."""

    facts: pulumi.Output[ClusterFacts]
    """Facts with all hosts, in rank order."""
    price_per_hour: pulumi.Output[str]
    price_source: pulumi.Output[str]
    machine_ids: list[pulumi.Output[str]]
    rental: pulumi.Output[str] | None = None
    """The id of the rental; that of a queue stands in the site's records alone."""
    ready: list[pulumi.Resource]
    """Resources that a job waits for."""

    def __init__(self, name: str, args: TrainingClusterArgs) -> None:
        super().__init__("microcluster:index:TrainingCluster", name, {})
        self._section, self._known = args.stack.cluster, args.facts

    def hold(self, ledger: Any, nodes: Sequence[Node]) -> None:
        """Take its nodes, and the price that the ledger gives for all of them."""
        self.facts = completed(self._known, hosts=tuple(node.host for node in nodes))
        self.price_per_hour, self.price_source = ledger.price_per_hour, ledger.price_source
        self.machine_ids, self.rental = [node.machine.id for node in nodes], nodes[0].machine.rental

    @property
    def costs(self) -> pulumi.Output[list[str]]:
        """The lines for people with the price of each part and of the whole."""
        known = pulumi.Output.all(self.price_per_hour, self.price_source)
        return known.apply(lambda price: self._section.costs(*price))


def declare_cluster(name: str, args: TrainingClusterArgs) -> TrainingCluster:
    """Declare the cluster in the stack's account."""
    return import_module(f"components.{args.stack.cluster.account}").Cluster(name, args)


def facts_of(stack: Stack, keys: StackKeys) -> ClusterFacts:
    """Return the facts of cluster and job as far as the stack file knows them: hosts have names and no addresses."""
    hardware = stack.cluster.hardware
    expected = stack.forecast.prediction if stack.forecast else None
    of_account = stack.cluster.facts()
    return ClusterFacts(
        stack=keys.owner.stack,
        mark=keys.owner.mark,
        hosts=tuple(HostFacts(host, "", "", "", "") for host in stack.cluster.hostnames),
        key_file=keys.key_file,
        rank_key_file=keys.rank_key_file,
        account=stack.cluster.account,
        account_config_file=stack.account.config_file,
        slots=hardware.gpus,
        gpu=hardware.gpu,
        flavor=hardware.name,
        container=_container_of(stack, stack.container) if stack.container else None,
        job=stack.job,
        data=stack.data,
        # What stays behind may grow without making any step another one.
        tree=stack.tree and replace(stack.tree, left_files=0, left_bytes=0, left_names=()),
        prediction=Prediction(expected.seconds, expected.compute_s, expected.wire_bytes) if expected else None,
        # When the lease ends is known once the first machine is there.
        guard=MachineLimits(idle_s=stack.guard.idle * 60) if stack.guard and stack.guard.idle else None,
        # Where something is sold, its ledger writes the limits into the account.
        lease_minutes=stack.guard.in_account.get("lease_minutes") if stack.guard and of_account.get("queue") else None,
        **of_account,
    )


def completed(facts: pulumi.Input[ClusterFacts], **later: Any) -> pulumi.Output[ClusterFacts]:
    """Fill in facts of which some are known only later."""
    return pulumi.Output.all(facts, later).apply(lambda known: replace(known[0], **known[1]))


def _container_of(stack: Stack, section: ContainerSection) -> Container:
    """Return the container for the remote steps."""
    key_file = _registry_key_file(stack, section)
    if key_file and key_file.exists():  # Else it is found when the machines bill already.
        try:
            registry_key(section.image, key_file)
        except KeyFileError as error:
            raise ConfigError(
                f"The registry's key in {key_file} is not used, as {error} Nothing was ordered."
            ) from error
    return Container(
        section.name,
        section.image,
        ssh_port=section.ssh_port,
        registry_key_file=str(key_file) if key_file else None,
        trainer=stack.trainer,
    )


def _registry_key_file(stack: Stack, container: ContainerSection) -> Path | None:
    """Return the registry's key file: the named one, else the account's; to NVIDIA's registry also the user's."""
    if container.registry_key_file:
        return Home.of().expand(container.registry_key_file)
    if not takes_key_alone(container.image):
        return None
    beside = [Path(stack.account.config_file).with_name(KEY_FILE)] if stack.account.config_file else []
    users = [Home.of().root / KEY_FILE] if registry(container.image) == NGC else []
    return next((file for file in (*beside, *users) if file.exists()), None)


def step(
    name: str,
    verb: str,
    facts: pulumi.Input[ClusterFacts],
    triggers: list[pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
    *,
    undo: str | None = None,
) -> local.Command:
    """Declare that the step ``verb`` has run with ``facts`` on standard input; a change of ``triggers`` replaces it.

    Args:
        undo: the step that runs on removal; it must not fail for an unreachable machine.
    """
    run, undone = f"{_FAB} step.{verb}", f"{_FAB} step.{undo}" if undo else None
    stdin = pulumi.Output.from_input(facts).apply(lambda known: known.to_json())
    declared = local.CommandArgs(create=run, update=run, delete=undone, stdin=stdin, triggers=triggers)
    return local.Command(name, declared, opts=opts)
