"""State of a run: what its launcher says now, and that as facts and as text."""

from contextlib import closing
from typing import Any, NamedTuple

from microcluster.analysis.failure_hints import next_for
from microcluster.analysis.run_state import Outcome
from microcluster.config.stack import ConfigError
from microcluster.display import run_text
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.planning.run_cost import Cost
from microcluster.remote import job
from microcluster.run.cluster import find_cluster, launcher_of

OF_THE_RUN = (
    *("state", "step", "batch", "max_steps", "train_loss", "validation_loss", "seconds_per_step", "predicted_s"),
    *("predicted_source", "causes", "eta_s", "phase", "reason", "cause", "alarms", "idle_s", "armed", "wandb_url"),
)
OF_A_NODE = ("name", "guest_id", "public_address", "private_address")


class Observed(NamedTuple):
    """Cluster of a stack, if it is up, and the state of its run."""

    cluster: ClusterFacts | None
    outcome: Outcome


def observed(stack: str) -> Observed:
    """Return the cluster, if it is up, and the state of its run."""
    cluster = find_cluster(stack)
    if cluster is None:
        return Observed(None, Outcome("absent"))
    with closing(launcher_of(cluster)) as launcher:  # A guard asks for days.
        return Observed(cluster, job.observe(launcher, cluster))


def observed_or_none(stack: str) -> Observed | None:
    """Return the cluster and the state of its run, or None where they cannot be found out, for whatever reason."""
    try:
        return observed(stack)
    except ConfigError:  # The stack file is gone, and by the state nothing is up.
        return Observed(None, Outcome("absent"))
    except Exception:  # noqa: BLE001 - nobody is kept from taking a stack down by what its machines answer
        return None


def outcome_or_none(stack: str) -> Outcome | None:
    """Return the state of the run alone, or None where it cannot be found out."""
    seen = observed_or_none(stack)
    return seen.outcome if seen else None


def status_facts(stack: str, cluster: ClusterFacts | None, outcome: Outcome, cost: Cost) -> dict[str, Any]:
    """Return the contract of `fab status --json`."""
    hosts = cluster.hosts if cluster else ()
    return {
        "stack": stack,
        "run": cluster.run if cluster else None,
        "word": outcome.word,
        **{key: getattr(outcome, key) for key in OF_THE_RUN},
        "checkpoint": max(outcome.checkpoints, default=None),
        "nodes": [{key: getattr(host, key) for key in OF_A_NODE} for host in hosts],
        "cost": cost.as_json(),
    }


def status_text(cluster: ClusterFacts, outcome: Outcome, cost: Cost) -> str:
    """Return the state of the run in a few lines."""
    lines = [f"run {cluster.run} of stack {cluster.stack}: {run_text.headline(outcome)}"]
    if outcome.reason:
        lines += run_text.trouble(outcome, cluster.stack)
    for alarm in outcome.alarms:
        lines.append(f"alarm: {run_text.alarm_text(alarm, cost)} ({alarm['cause']})")
        lines.append(f"  {next_for(alarm['cause'], cluster.stack)}")
    more = [run_text.outlook(outcome, cost), *(f"put aside: {one}" for one in outcome.put_aside)]
    more.append(f"note: {run_text.remark(outcome, cluster.stack)}" if outcome.remark else None)
    more.append(f"trained by {outcome.trainer}" if outcome.trainer else None)
    more.append(f"{run_text.WANDB}: {outcome.wandb_url}" if outcome.wandb_url else None)
    more.append(run_text.copy(outcome))
    more.append(run_text.left_out(outcome.malformed) if outcome.malformed else None)
    more += [f"{host.name}  {host.public_address}  {host.private_address}".rstrip() for host in cluster.hosts]
    return "\n  ".join([*lines, *filter(None, more), f"cost: {cost}"])
