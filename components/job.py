"""The training job on a cluster."""

from dataclasses import dataclass, replace

import pulumi

from agent.run.document import NO_CHECKPOINTS
from components.cluster import TrainingCluster, TrainingClusterArgs, completed, step
from microcluster.config.forecast import NO_FORECAST
from microcluster.jobs.run_spec import RunFolder

ON_ANY = "another number of nodes goes on with this run from its newest checkpoint (job.resumeOn: any)"
STARTS_OVER = "the whole run: its program writes no checkpoints, and a run that ends early starts over"

NO_GUARD = "none: nothing but fab down or pulumi destroy ends the rental"
HELD = "held while `fab watch` runs; without it, every minute from now on: fab guard --install --stack {}"


@dataclass(frozen=True)
class TrainingJobArgs:
    """Inputs of a training job: the decided cluster and run, and the component that rents its nodes."""

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
    """Training time that a crash loses, with its price."""
    guard: str
    """Sentence about who enforces the rental's limits once this command is over."""
    facts: pulumi.Output[str]
    """JSON of the cluster facts for the operator's verbs."""

    def __init__(self, name: str, args: TrainingJobArgs) -> None:
        super().__init__("microcluster:index:TrainingJob", name, {})
        decided, document = args.of.decided, RunFolder(args.of.decided).document
        self.run = str(decided.run)
        per_hour = args.cluster.price_per_hour.apply(lambda price: float(price) if price else None)
        known = args.cluster.facts.apply(
            lambda facts: replace(decided, hosts=facts.hosts, drive=facts.drive, interface=facts.interface)
        )
        facts = completed(known, per_hour=per_hour)
        self.facts = facts.apply(lambda whole: whole.to_json())
        expected = args.of.stack.forecast
        said = (*document.logs.not_shown, *((ON_ANY,) if decided.job.any_world else ()), *args.of.stack.notes)
        self.plan = "; ".join((expected.summary if expected else NO_FORECAST, *said))
        self.at_risk = expected.stake if expected else NO_FORECAST
        if document.checkpoints.format == NO_CHECKPOINTS:
            self.at_risk = STARTS_OVER
        self.guard = HELD.format(args.of.stack.name) if args.of.stack.guard else NO_GUARD
        if expected and expected.warning:
            pulumi.log.warn(expected.warning, self)
        if args.of.stack.tree:
            pulumi.log.info("; ".join(args.of.stack.tree.summary), self)
        # The old run must end before the new one starts: both need the same GPUs.
        after = pulumi.ResourceOptions(parent=self, depends_on=args.cluster.ready, delete_before_replace=True)
        step(f"{name}-run", "start-job", facts, [self.run, *args.cluster.machine_ids], after, undo="stop-job")
        self.register_outputs({"run": self.run})
