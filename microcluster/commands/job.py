"""`fab stop` and `fab resume`: end the job on machines that stay, and continue it there."""

from core.plain_text import note, say
from microcluster.commands.command import FAILED, STACK, command, print_json, suggest
from microcluster.commands.stack_outputs import cluster_of, find_cluster
from microcluster.commands.step import secrets_for
from microcluster.remote import job
from microcluster.remote.parallel import on_all
from microcluster.remote.steps import bring_image, open_hosts, start_container
from microcluster.setup.secret_env import REGISTRY_KEY, kept


@command
def stop(stack: str = STACK, as_json: bool = False) -> int:
    """Stop the job and prove that no process of it is left; the machines stay and keep costing money."""
    cluster = find_cluster(stack)
    if cluster is None:
        note(f"Stack {stack} is not up; there is no job to stop. Bring it up: make up STACK={stack}")
        if as_json:
            print_json({"stack": stack, "run": None, "stopped": True, "unclear": {}})
        return 0
    unclear = job.stop_job(open_hosts(cluster), cluster, graceful=True)
    if as_json:
        print_json({"stack": stack, "run": cluster.run, "stopped": not unclear, "unclear": unclear})
    elif unclear:
        note("\n".join(unclear.values()))
    else:
        say(f"run {cluster.run}: no process of it is left on any of its machines")
        suggest(f"`fab resume --stack {stack}` continues it, `make down STACK={stack}` stops the bill.")
    return FAILED if unclear else 0


@command
def resume(stack: str = STACK) -> int:
    """Continue the job from its newest checkpoint, also after a machine was rebooted."""
    cluster = cluster_of(stack)
    hosts = open_hosts(cluster)
    if cluster.container:
        bring_image(hosts, cluster, kept().get(REGISTRY_KEY))
        on_all(hosts, lambda host: start_container(host, cluster))
    say(f"run {cluster.run}: {job.start_job(hosts, cluster, secrets_for(cluster))}")
    suggest(f"`fab watch --stack {stack}` follows it.")
    return 0
