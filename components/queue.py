"""A cluster before a site's queue: nothing is ordered; the queue is checked first, and left last."""

import pulumi

from components.cluster import TrainingCluster, TrainingClusterArgs, step


class Cluster(TrainingCluster):
    """The nodes that the queue will grant to the run."""

    def __init__(self, name: str, args: TrainingClusterArgs) -> None:
        super().__init__(name, args)
        child = pulumi.ResourceOptions(parent=self)
        # Their addresses are known to the queue's job alone, when it starts.
        self.facts = pulumi.Output.from_input(args.facts)
        self.price_per_hour = pulumi.Output.from_input("")
        self.price_source = pulumi.Output.from_input(args.stack.cluster.counted)
        self.machine_ids = []
        # Deleted after the run's own step, and also where that was killed before it was known: whatever has the mark goes.
        self.ready = [step(f"{name}-queue", "check-queue", self.facts, [], child, undo="leave-queue")]
        self.register_outputs({"queue": args.stack.cluster.queue})
