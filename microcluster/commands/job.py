"""The verbs on a living job: status, stop, resume, ssh."""

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import invoke

from core.plain_text import note, say
from microcluster.analysis.run_state import Outcome
from microcluster.commands import preflight_table, run_text
from microcluster.commands.command import FAILED, STACK, VerbError, print_json, suggest, verb
from microcluster.commands.money import Cost, cost_of
from microcluster.commands.program_secrets import secrets_for
from microcluster.commands.stack_outputs import cluster_of, find_cluster, host_named, launcher_of
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.remote import job as remote_job
from microcluster.remote.openssh import ssh_argv
from microcluster.remote.parallel import on_all
from microcluster.remote.steps import bring_image, open_hosts, start_container
from microcluster.setup.secret_env import REGISTRY_KEY, kept


@verb
def status(context: invoke.Context, stack: str = STACK, json: bool = False, preflight: bool = False) -> int:
    """Show the job's state and cost; with --preflight also every preflight check."""
    cluster = find_cluster(stack)
    outcome = remote_job.observe(launcher_of(cluster), cluster) if cluster else Outcome("absent")
    cost = cost_of(cluster) if cluster else Cost(None, None)
    if json:
        print_json(status_facts(stack, cluster, outcome, cost) | ({"checks": outcome.checks} if preflight else {}))
    elif cluster is None:
        say(f"stack {stack} is not up. Bring it up: make up STACK={stack}")
    else:
        say(run_text.status(cluster, outcome, cost))
        if preflight:
            say(preflight_table.table(outcome.checks))
    return 0


@verb
def stop(context: invoke.Context, stack: str = STACK, json: bool = False) -> int:
    """Stop the job and prove that no process of it is left; the machines stay and keep costing money."""
    cluster = find_cluster(stack)
    if cluster is None:
        note(f"Stack {stack} is not up; there is no job to stop. Bring it up: make up STACK={stack}")
        if json:
            print_json({"stack": stack, "run": None, "stopped": True, "unclear": {}})
        return 0
    unclear = remote_job.stop_job(open_hosts(cluster), cluster, graceful=True)
    if json:
        print_json({"stack": stack, "run": cluster.run, "stopped": not unclear, "unclear": unclear})
    elif unclear:
        note("\n".join(unclear.values()))
    else:
        say(f"run {cluster.run}: no process of it is left on any of its machines")
        suggest(f"`fab resume --stack {stack}` continues it, `make down STACK={stack}` stops the bill.")
    return FAILED if unclear else 0


@verb
def resume(context: invoke.Context, stack: str = STACK) -> int:
    """Continue the job from its newest checkpoint, also after a machine was rebooted."""
    cluster = cluster_of(stack)
    hosts = open_hosts(cluster)
    if cluster.container:
        bring_image(hosts, cluster, kept().get(REGISTRY_KEY))
        on_all(hosts, lambda host: start_container(host, cluster))
    say(f"run {cluster.run}: {remote_job.start_job(hosts, cluster, secrets_for(cluster))}")
    suggest(f"`fab watch --stack {stack}` follows it.")
    return 0


@verb
def ssh(context: invoke.Context, node: str, stack: str = STACK) -> None:
    """Open a shell on NODE, or run the command after `--` there, in the shell of NODE, as ssh does."""
    cluster = cluster_of(stack)
    line = " ".join(words_after_dashes(sys.argv))
    _exec((*ssh_argv(host_named(cluster, node), open_hosts(cluster)), *([line] if line else [])))


def _exec(argv: Sequence[str]) -> NoReturn:
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - words, no shell
    except FileNotFoundError as missing:
        raise VerbError(f"there is no {argv[0]} on this computer. Install openssh-client, then try again.") from missing


def words_after_dashes(argv: list[str]) -> tuple[str, ...]:
    """Return the words after the first ``--``."""
    return tuple(argv[argv.index("--") + 1 :]) if "--" in argv else ()


def status_facts(stack: str, cluster: ClusterFacts | None, outcome: Outcome, cost: Cost) -> dict[str, Any]:
    """Return the contract of `fab status --json`."""
    hosts = cluster.hosts if cluster else ()
    keys = (
        "state",
        "step",
        "max_steps",
        "train_loss",
        "validation_loss",
        "seconds_per_step",
        "predicted_s",
        "predicted_source",
        "eta_s",
        "phase",
        "reason",
        "cause",
        "alarms",
    )
    nodes = [
        {
            "name": h.name,
            "guest_id": h.guest_id,
            "public_address": h.public_address,
            "private_address": h.private_address,
        }
        for h in hosts
    ]
    run = outcome.run or (cluster.run if cluster else None)
    return {
        "stack": stack,
        "run": run,
        "word": outcome.word,
        **{key: getattr(outcome, key) for key in keys},
        "checkpoint": max(outcome.checkpoints, default=None),
        "nodes": nodes,
        "cost": cost.as_json(),
    }
