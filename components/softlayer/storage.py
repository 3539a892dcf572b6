"""The data volume of a node: formatted once and mounted; Docker and the runs store their data on it."""

from dataclasses import dataclass, replace

import pulumi

from components.steps import step
from microcluster.jobs.cluster_facts import ClusterFacts


@dataclass(frozen=True)
class DataVolumeArgs:
    """``facts`` are the node's; the disk is cancelled with its ``guest``."""

    facts: pulumi.Input[ClusterFacts]
    guest: pulumi.CustomResource
    capacity_gb: int
    mount_point: str
    after: pulumi.Resource


class DataVolume(pulumi.ComponentResource):
    """The SAN disk that was ordered and is billed with a guest, as a mounted file system."""

    mount_point: pulumi.Output[str]
    ready: pulumi.Resource

    def __init__(self, name: str, args: DataVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:DataVolume", name, {}, opts)
        facts = pulumi.Output.from_input(args.facts).apply(
            lambda node: replace(node, data_disk_gb=args.capacity_gb, mount_point=args.mount_point).to_json()
        )
        own = pulumi.ResourceOptions(parent=self, deleted_with=args.guest, depends_on=[args.after])
        self.ready = step(f"{name}-mounted", "mount-volume", facts, [args.guest.id], own)
        self.mount_point = pulumi.Output.from_input(args.mount_point)
        self.register_outputs({"mountPoint": self.mount_point})
