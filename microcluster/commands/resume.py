"""`fab resume`: continue the job on machines that stay."""

from microcluster.commands.command_line import STACK, command, suggest
from microcluster.commands.guard import watched
from microcluster.commands.stack_outputs import cluster_of
from microcluster.commands.step import secrets_for
from microcluster.core.home import Home
from microcluster.core.plain_text import say
from microcluster.remote import job
from microcluster.remote.parallel import on_all
from microcluster.remote.steps import bring_image, open_hosts, start_container
from microcluster.setup.secret_env import REGISTRY_KEY, kept


@command
def resume(stack: str = STACK) -> int:
    """Continue the job from its newest checkpoint, also after a machine was rebooted."""
    cluster = cluster_of(stack)
    watched(stack, None)  # A limit for which the machines have stopped it may be a later one by now.
    hosts = open_hosts(cluster)
    if cluster.container:
        bring_image(hosts, cluster, Home.of().digests, kept().get(REGISTRY_KEY))
        on_all(hosts, lambda host: start_container(host, cluster))
    say(f"run {cluster.run}: {job.start_job(hosts, cluster, secrets_for(cluster))}")
    suggest(f"`fab watch --stack {stack}` follows it.")
    return 0
