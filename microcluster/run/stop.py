"""End of a job on machines that stay."""

from microcluster.command_line.parts import print_json, suggest
from microcluster.core.plain_text import note, say
from microcluster.remote import job
from microcluster.remote.steps import open_hosts
from microcluster.run.cluster import find_cluster
from microcluster.setup.errors import FAILED


def stop_run(stack: str, *, as_json: bool = False) -> int:
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
        note("\n".join(f"{name}: {why}" for name, why in unclear.items()))
        note(
            f"The job may still run there. `fab stop --stack {stack}` tries again, `make down STACK={stack}` ends it with its machines."
        )
    else:
        say(f"run {cluster.run}: no process of it is left on any of its machines")
        suggest(f"`fab resume --stack {stack}` continues it, `make down STACK={stack}` stops the bill.")
    return FAILED if unclear else 0
