"""The steps that `pulumi up` and `pulumi destroy` run: cluster's facts on standard input, one line of output, safe to repeat."""

import sys
from collections.abc import Callable

from microcluster.command_line.command import command
from microcluster.core.home import Home
from microcluster.core.plain_text import note, say
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.lifecycle.account_opening import drive_password
from microcluster.remote import steps
from microcluster.remote.host import Host
from microcluster.remote.job import start_job as start
from microcluster.remote.job import stop_job as stop
from microcluster.run.job import secrets_for
from microcluster.setup.errors import UserMistake
from microcluster.setup.secret_env import REGISTRY_KEY, kept


def _read_facts() -> ClusterFacts:
    if sys.stdin.isatty():  # Reading from a terminal would wait for ever.
        raise UserMistake("A step reads the cluster's facts on standard input, from `pulumi up`. Start with: make up")
    return ClusterFacts.from_json(sys.stdin.read())


def _one_host(act: Callable[[Host, ClusterFacts], list[str]]) -> int:
    cluster = _read_facts()
    for host in steps.open_hosts(cluster):
        changed = act(host, cluster)
        say(f"{host.facts.name}: " + (f"{', '.join(changed)} done" if changed else "nothing to do"))
    return 0


@command
def prepare_node() -> int:
    """Wait for ssh, then install packages, driver and container runtime on one machine."""
    return _one_host(steps.prepare_node)


@command
def prepare_machine() -> int:
    """Wait for ssh; firewall, logins, time and packages of one machine on which processes run without a container."""
    return _one_host(steps.prepare_machine)


@command
def mount_drive() -> int:
    """The shared drive of one machine; its password is read from the account."""
    cluster = _read_facts()
    password = drive_password(cluster.account, cluster.account_config_file, cluster.drive.id, cluster.owner)
    for host in steps.open_hosts(cluster):
        say(f"{host.facts.name}: {', '.join(steps.mount_drive(host, cluster, password)) or 'nothing to do'}")
    return 0


@command
def compare_drive() -> int:
    """Check that every machine reads on the shared drive what the first one writes."""
    cluster = _read_facts()
    steps.compare_drive(steps.open_hosts(cluster), cluster)
    say("drive: every machine sees what the first one writes")
    return 0


@command
def mount_volume() -> int:
    """Mount the data disk of one machine and put Docker's storage on it."""
    return _one_host(steps.mount_volume)


@command
def bring_image() -> int:
    """Build the training image on the first machine and copy it to the others."""
    cluster = _read_facts()
    done = steps.bring_image(steps.open_hosts(cluster), cluster, Home.of().digests, kept().get(REGISTRY_KEY))
    say(f"training image: {', '.join(done) or 'nothing to do'}")
    return 0


@command
def start_container() -> int:
    """Start the training container of one machine."""
    return _one_host(steps.start_container)


@command
def check_queue() -> int:
    """The site's queue can run what is asked of it; nothing is submitted."""
    cluster = _read_facts()
    [login] = steps.open_hosts(cluster)
    steps.prepare_queue(login, cluster)
    say(f"{login.facts.name}: queue {cluster.queue.name if cluster.queue else ''} can run it")
    return 0


@command
def leave_queue() -> int:
    """Delete every job with the stack's mark, and prove that the queue shows none."""
    cluster = _read_facts()
    [login] = steps.open_hosts(cluster)
    say(f"{login.facts.name}: {steps.leave_queue(login, cluster)}")
    return 0


@command
def start_job() -> int:
    """Start the run's supervisor on the launcher."""
    cluster = _read_facts()
    say(f"run {cluster.run}: {start(steps.open_hosts(cluster), cluster, secrets_for(cluster))}")
    return 0


@command
def stop_job() -> int:
    """End the run on every machine; never fails, because nothing over ssh may block a cancellation."""
    try:
        cluster = _read_facts()
        unclear = stop(steps.open_hosts(cluster), cluster)
    except Exception as error:  # noqa: BLE001 - whatever it is, the cancellation that follows ends the job too
        note(f"stopping the job: {error}")
        say("not stopped over ssh; cancelling the machines ends it")
        return 0
    for why in unclear.values():
        note(f"stopping the job: {why}")
    say(
        f"run {cluster.run}: "
        + (f"not proved stopped on {', '.join(unclear)}" if unclear else "stopped on every machine")
    )
    return 0
