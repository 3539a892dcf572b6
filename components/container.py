"""The training container on one node."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pulumi

from components.node import GpuNode
from components.steps import step
from config import Owner
from launchers import payload as facts


@dataclass(frozen=True)
class TrainingContainerArgs:
    """``peers`` are the hosts in rank order, this node among them: its ranks log in to each of them."""

    node: GpuNode
    peers: pulumi.Input[list[facts.Host]]
    container: facts.Container
    owner: Owner


class TrainingContainer(pulumi.ComponentResource):
    """The container in which the ranks of one node run, with its own sshd on the private address."""

    ready: pulumi.Resource

    def __init__(self, name: str, args: TrainingContainerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:TrainingContainer", name, {}, opts)
        stdin = args.node.payload.apply(
            lambda node: replace(node, container=args.container, rank_key_file=args.owner.rank_key_file).to_json()
        )
        own = pulumi.ResourceOptions(parent=self, deleted_with=args.node.guest, depends_on=[args.node.volume.ready])
        self.ready = step(f"{name}-running", "start-container", stdin, [args.node.guest.id], own)
        self.register_outputs({"image": args.container.image})
