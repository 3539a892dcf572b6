"""Start of a run on machines that stay, and the keys that its program takes."""

from microcluster.command_line.parts import suggest
from microcluster.core.home import Home
from microcluster.core.key_file import SETTING, KeyFileError, settings_in
from microcluster.core.plain_text import say
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.run_spec import RunFolder
from microcluster.remote import job
from microcluster.remote.parallel import on_all
from microcluster.remote.steps import bring_image, open_hosts, start_container
from microcluster.setup.errors import UserMistake
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
    names = RunFolder(cluster).plan.secrets if cluster.job else ()
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
