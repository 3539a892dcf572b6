"""Cluster of a stack that is up: its facts from Pulumi's outputs, its hosts, its account, and its cost."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from microcluster.accounts.registry import DEFAULT
from microcluster.accounts.shared.opened_account import OpenedAccount
from microcluster.accounts.shared.rental import last_rental
from microcluster.command_line.parts import SENTENCES, sentence
from microcluster.config import stack as config
from microcluster.core.home import Home, Owner
from microcluster.core.plain_text import note
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.lifecycle import pulumi, pulumi_state
from microcluster.lifecycle.account_opening import open_account
from microcluster.planning.run_cost import Cost
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


def cost_of(cluster: ClusterFacts, say: Callable[[str], None] = note) -> Cost:
    """Return the cost of a stack that is up, as its account says."""
    return cost_by(lambda: (account_of(cluster), cluster.owner), say)


def cost_by(opened: Callable[[], tuple[OpenedAccount, Owner]], say: Callable[[str], None]) -> Cost:
    """Return the cost of the last rental in an account that ``opened`` opens; unknown where that fails."""
    account, now = None, datetime.now(UTC)
    try:
        account, owner = opened()
        rental = last_rental(account.charges_listed(owner), now)
    except SENTENCES as error:
        say(sentence(str(error)))
        return Cost(None, None, emulated=bool(account and account.is_emulated))
    oldest = min((row for row in rental.open + rental.kept if row.hourly), key=lambda row: row.opened, default=None)
    next_hour = oldest.price.paid_until(oldest.opened, now).astimezone(UTC) if oldest else None
    return Cost(rental.billed_per_hour, rental.cost, rental.currency, next_hour, account.is_emulated)


def account_of(cluster: ClusterFacts) -> OpenedAccount:
    """Open the account in which a stack that is up was ordered."""
    return open_account(cluster.account or DEFAULT, cluster.account_config_file)
