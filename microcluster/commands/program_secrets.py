"""Secrets for the user's program: environment variables, else files that only their owner can read."""

from core.home import Home
from microcluster.commands.command import UserMistake
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.jobs.kind import kind_of
from microcluster.setup.secret_env import kept

OTHERS_MAY = 0o077


def secrets_for(cluster: ClusterFacts) -> dict[str, str]:
    """Return those of the variables that the job's program takes for which there is a value.

    Raises:
        UserMistake: for a file that others may read.
    """
    names = kind_of(cluster.job.kind).secrets(cluster.job) if cluster.job else ()
    found = {name: kept().get(name) or _from_file(name) for name in names}
    return {name: value for name, value in found.items() if value}


def _from_file(name: str) -> str | None:
    file = Home.of().root / name.lower()
    if not file.is_file():
        return None
    if file.stat().st_mode & OTHERS_MAY:
        raise UserMistake(
            f"Reading {file}: others may read it too. Forbid it (chmod 600 {file}), then run the same command again."
        )
    return file.read_text().strip()
