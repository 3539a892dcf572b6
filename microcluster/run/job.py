"""Job of a run on machines that stay: its keys, its continuation, and its end."""

from microcluster.command_line.parts import print_json, suggest
from microcluster.core.home import Home
from microcluster.core.key_file import SETTING, KeyFileError, settings_in
from microcluster.core.plain_text import note, say
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job
from microcluster.remote.parallel import on_all
from microcluster.remote.steps import bring_image, open_hosts, start_container
from microcluster.run.cluster import find_cluster
from microcluster.setup.errors import FAILED, UserMistake
from microcluster.setup.secret_env import REGISTRY_KEY, kept


def resume_run(cluster: ClusterFacts) -> int:
    """Continue the job of a cluster from its newest checkpoint, also after a machine was rebooted."""
    hosts = open_hosts(cluster)
    if cluster.container:
        bring_image(hosts, cluster, Home.of().digests, kept().get(REGISTRY_KEY))
        on_all(hosts, lambda host: start_container(host, cluster))
    say(f"run {cluster.run}: {job.start_job(hosts, cluster, secrets_for(cluster))}")
    suggest(f"`fab watch --stack {cluster.stack}` follows it.")
    return 0


def secrets_for(cluster: ClusterFacts) -> dict[str, str]:
    """Return those of the variables that the job's program takes for which there is a value.

    Raises:
        UserMistake: for a file that holds no key, or that others may read.
    """
    names = RunFolder(cluster).document.program.secrets if cluster.job else ()
    found = {name: kept().get(name) or _from_file(name) for name in names}
    return {name: value for name, value in found.items() if value}


def _from_file(name: str) -> str | None:
    file = Home.of().root / name.lower()
    if not file.exists():
        return None
    try:
        return settings_in(file, name.lower(), "Write the key alone into it (mode 0600).").get(SETTING)
    except KeyFileError as error:
        raise UserMistake(f"Reading the key in {file}: {error} Then run the same command again.") from None


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
