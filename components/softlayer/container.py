"""The training container on one node."""

from dataclasses import dataclass, replace

import pulumi

from components.softlayer.image import TrainingImage
from components.softlayer.node import GpuNode
from components.steps import step
from microcluster.config import Owner
from microcluster.jobs import cluster_facts as facts


@dataclass(frozen=True)
class TrainingContainerArgs:
    """``image`` provides the container's image on the node."""

    node: GpuNode
    image: TrainingImage
    container: facts.Container
    owner: Owner


class TrainingContainer(pulumi.ComponentResource):
    """The container in which the ranks of one node run, with its own sshd on the private address."""

    ready: pulumi.Resource

    def __init__(self, name: str, args: TrainingContainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:TrainingContainer", name, {}, opts)
        stdin = args.node.facts.apply(
            lambda node: replace(node, container=args.container, rank_key_file=args.owner.rank_key_file).to_json()
        )
        own = pulumi.ResourceOptions(parent=self, deleted_with=args.node.guest, depends_on=[args.image.ready])
        self.ready = step(f"{name}-running", "start-container", stdin, [args.node.guest.id, args.image.tag], own)
        self.register_outputs({"image": args.image.tag})
