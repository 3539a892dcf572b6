"""The training job on a cluster."""

from dataclasses import dataclass, replace

import pulumi

from components.cluster import TrainingCluster, TrainingClusterArgs, completed, step
from microcluster.config.forecast import NO_FORECAST
from microcluster.jobs.run_plan import NO_CHECKPOINTS

STARTS_OVER = "the whole run: its program writes no checkpoints, and a run that ends early starts over"


@dataclass(frozen=True)
class TrainingJobArgs:
    """What is to run, and the cluster to train on."""

    of: TrainingClusterArgs
    cluster: TrainingCluster


class TrainingJob(pulumi.ComponentResource):
    """One run under a supervisor on the first node; it does not need this computer.

    Raising ``maxSteps`` continues the run. Any other change of the run's id stops it and starts another.
    """

    run: str
    plan: str
    """Expected hours and dollars."""
    at_risk: str
    """What a crash may cost."""
    facts: pulumi.Output[str]
    """JSON of the cluster facts for the operator's verbs."""

    def __init__(self, name: str, args: TrainingJobArgs) -> None:
        super().__init__("microcluster:index:TrainingJob", name, {})
        decided, plan = args.of.decided
        self.run = str(decided.run)
        per_hour = args.cluster.price_per_hour.apply(lambda price: float(price) if price else None)
        known = args.cluster.facts.apply(lambda facts: replace(decided, hosts=facts.hosts, drive=facts.drive))
        facts = completed(known, per_hour=per_hour)
        self.facts = facts.apply(lambda whole: whole.to_json())
        expected = args.of.stack.forecast
        self.plan = "; ".join((expected.summary if expected else NO_FORECAST, *plan.not_shown))
        self.at_risk = expected.stake if expected else NO_FORECAST
        if plan.checkpoints == NO_CHECKPOINTS:
            self.at_risk = STARTS_OVER
        if expected and expected.warning:
            pulumi.log.warn(expected.warning, self)
        if args.of.stack.tree:
            pulumi.log.info("; ".join(args.of.stack.tree.summary), self)
        # The old run must end before the new one starts: both need the same GPUs.
        after = pulumi.ResourceOptions(parent=self, depends_on=args.cluster.ready, delete_before_replace=True)
        step(f"{name}-run", "start-job", facts, [self.run, *args.cluster.machine_ids], after, undo="stop-job")
        self.register_outputs({"run": self.run})
