"""The training image, the same on every node of a cluster."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pulumi

from components.softlayer.node import GpuNode
from components.steps import step
from microcluster.jobs import cluster_facts as facts
from microcluster.jobs import image


@dataclass(frozen=True)
class TrainingImageArgs:
    """The nodes in rank order; the first one builds. ``facts`` lack the hosts."""

    nodes: Sequence[GpuNode]
    facts: facts.ClusterFacts


class TrainingImage(pulumi.ComponentResource):
    """One image, built on the first node and copied to the others."""

    tag: str
    """Its name on every node, which follows from the Dockerfile."""
    ready: pulumi.Resource

    def __init__(self, name: str, args: TrainingImageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:TrainingImage", name, {}, opts)
        assert args.facts.container
        self.tag = image.tag(args.facts.container)
        hosts = pulumi.Output.all(*(node.host for node in args.nodes))
        stdin = hosts.apply(lambda known: replace(args.facts, hosts=tuple(known)).to_json())
        disks = pulumi.ResourceOptions(parent=self, depends_on=[node.volume.ready for node in args.nodes])
        self.ready = step(f"{name}-brought", "bring-image", stdin, [self.tag], disks)
        self.register_outputs({"tag": self.tag})
