"""The facts of a cluster that is up, from Pulumi's outputs, and its hosts."""

import json
from collections.abc import Mapping
from dataclasses import replace

from microcluster.config import stack as config
from microcluster.core.home import Home
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.lifecycle import pulumi, pulumi_state
from microcluster.remote.host import Host
from microcluster.remote.steps import open_hosts
from microcluster.setup.errors import UserMistake


def find_cluster(stack: str) -> ClusterFacts | None:
    """Return the cluster's facts from the stack's outputs, or None when it is not up."""
    found = _outputs(stack).get(pulumi.OUTPUT)
    if not found:
        config.path_of(stack)  # Refuses a stack that does not exist. The file of one that is up may be gone.
        return None
    facts = ClusterFacts.from_json(found if isinstance(found, str) else json.dumps(found))
    return facts if facts.stack == stack else replace(facts, stack=stack, label=facts.stack)


def cluster_of(stack: str) -> ClusterFacts:
    """Return the cluster of a stack that is up, or say how to bring it up."""
    cluster = find_cluster(stack)
    if cluster is None:
        raise UserMistake(f"Stack {stack} is not up. Bring it up: make up STACK={stack}")
    return cluster


def launcher_of(cluster: ClusterFacts) -> Host:
    """Return the host from which the job is started."""
    return open_hosts(cluster)[0]


def host_named(cluster: ClusterFacts, node: str) -> Host:
    """Return one host by its name; before a queue there is the login host alone, as sites let nobody log in to a node."""
    hosts = open_hosts(cluster)
    for host in hosts:
        if host.facts.name == node:
            return host
    names = ", ".join(host.facts.name for host in hosts)
    raise UserMistake(f"Stack {cluster.stack} has no machine {node} to log in to; it has {names}.")


def _outputs(stack: str) -> Mapping[str, object]:
    return pulumi_state.outputs(stack, Home.of())
