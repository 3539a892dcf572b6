"""The training job on a cluster."""

from dataclasses import dataclass, fields, replace

import pulumi

from components.cluster import TrainingCluster, cluster_facts_of, hostnames
from components.steps import step
from microcluster.config import Owner, Stack
from microcluster.jobs import cluster_facts as facts
from microcluster.jobs.kind import kind_of
from microcluster.jobs.run_id import run_id
from microcluster.jobs.values import NO_CHECKPOINTS

UNPLANNED = "no prediction: this model on this hardware was never timed"
STARTS_OVER = "the whole run: its program writes no checkpoints, and a run that ends early starts over"


@dataclass(frozen=True)
class TrainingJobArgs:
    """The checked stack, its owner and the cluster to train on."""

    stack: Stack
    owner: Owner
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

    def __init__(self, name: str, args: TrainingJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("microcluster:index:TrainingJob", name, {}, opts)
        job = job_of(args.stack)
        self.run = run_of(args.stack, args.owner, job)
        own_facts = {"job": job, "run": self.run, "prediction": prediction_of(args.stack)}
        self.facts = pulumi.Output.all(args.cluster.facts, args.cluster.price_per_hour).apply(
            lambda known: replace(known[0], **own_facts, per_hour=float(known[1]) if known[1] else None).to_json()
        )
        plan = args.stack.plan
        self.plan, self.at_risk = (plan.summary, plan.stake) if plan else (UNPLANNED, UNPLANNED)
        kind = kind_of(job.kind)
        self.plan = "; ".join((self.plan, *kind.not_shown(job)))
        if kind.checkpoints(job) == NO_CHECKPOINTS:
            self.at_risk = STARTS_OVER
        if plan and plan.warning:
            pulumi.log.warn(plan.warning, self)
        # The old run must end before the new one starts: both need the same GPUs.
        own = pulumi.ResourceOptions(parent=self, depends_on=args.cluster.ready, delete_before_replace=True)
        step(f"{name}-run", "start-job", self.facts, [self.run, *args.cluster.machine_ids], own, undo="stop-job")
        self.register_outputs({"run": self.run})


def job_of(stack: Stack) -> facts.Job:
    """Return the job's facts: the fields that its kind shares with the stack file's section, and the data."""
    wanted, section = kind_of(stack.job.kind).facts, stack.job
    names = {field.name for field in fields(wanted)} & set(type(section).model_fields)
    values = {name: getattr(section, name) for name in names} | {"data": _data_of(stack)}
    return wanted(**values | ({"files": stack.program} if stack.program else {}))


def prediction_of(stack: Stack) -> facts.Prediction | None:
    """Return the expected step time."""
    if stack.plan is None:
        return None
    expected = stack.plan.prediction
    return facts.Prediction(expected.seconds, expected.compute_s, expected.wire_bytes)


def _data_of(stack: Stack) -> facts.Data | None:
    data = stack.data
    if not data:
        return None
    path = str(data.path) if data.path else None
    return facts.Data(data.id, data.address, data.sha256, path, data.is_tar, data.files)


def run_of(stack: Stack, owner: Owner, job: facts.Job) -> str:
    """Return the run's id; it does not depend on addresses, so a preview knows it."""
    unknown = tuple(facts.Host(host, "", "", "", "") for host in hostnames(stack))
    return run_id(replace(cluster_facts_of(stack, owner, unknown), job=job))
