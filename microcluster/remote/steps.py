"""The steps of the verbs ``step.*`` in their order; each can be repeated."""

from collections.abc import Callable, Sequence
from pathlib import Path

from microcluster.core.catalog.gpus import GPUS
from microcluster.core.plain_text import note
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.remote import queue
from microcluster.remote.docker import ensure_container, ensure_docker_storage
from microcluster.remote.gpu import count_gpus, ensure_gpu, ensure_requirements, keep_loaded
from microcluster.remote.host import SUDO, Host, wait_for_ssh
from microcluster.remote.host_key import trusted_key
from microcluster.remote.login_and_firewall import ensure_firewall, ensure_key_login
from microcluster.remote.openssh import login_host
from microcluster.remote.parallel import on_all
from microcluster.remote.ssh_mesh import ensure_rank_files
from microcluster.remote.storage import DataDisk, Mount, ensure_data_disk, ensure_mounted, prove_same
from microcluster.remote.system import ensure_system
from microcluster.remote.training_image import distribute, ensure_built, image_id


def open_hosts(cluster: ClusterFacts) -> list[Host]:
    """Return the cluster's hosts in rank order, not yet connected; before a queue the one login host, which sees every run's folder."""
    key_file = cluster.key_file
    if cluster.queue:
        return [login_host(cluster.account_config_file or "the file that the stack file has to name")]
    return [
        Host(facts, cluster.user, key_file, trusted_key=trusted_key(key_file, facts.guest_id))
        for facts in cluster.hosts
    ]


def prepare_node(host: Host, cluster: ClusterFacts) -> list[str]:
    """Make a machine able to run containers on its GPUs; return the steps that changed something."""
    driver = GPUS[str(cluster.gpu)].driver
    return _run(
        host,
        ("logins by key only", lambda: ensure_key_login(host)),
        ("requirements", lambda: ensure_requirements(host)),
        ("time and packages", lambda: ensure_system(host)),
        ("driver and container runtime", lambda: ensure_gpu(host, cluster.slots, driver)),
    )


def prepare_machine(host: Host, cluster: ClusterFacts) -> list[str]:
    """Make a machine able to run the processes itself; return the steps that changed something.

    Its login is a user with sudo, and its vendor has no firewall.
    """
    wait_for_ssh(host)
    root = host.as_root()
    host.run((*SUDO, "true"))  # A step that accepts exit code 1 would take a refusal for an answer.
    return _run(
        host,
        ("firewall", lambda: ensure_firewall(root, cluster.admin_cidrs, cluster.private_subnet)),
        ("logins by key only", lambda: ensure_key_login(root)),
        ("time and packages", lambda: ensure_system(root)),
        ("folder of runs", lambda: _ensure_folder(root, cluster)),
        ("persistence mode", lambda: keep_loaded(root)),
        ("GPUs", lambda: count_gpus(host, cluster.slots)),
    )


def mount_drive(host: Host, cluster: ClusterFacts, password: str) -> list[str]:
    """Mount the shared drive; return the steps that changed something."""
    mount = Mount(cluster.drive, cluster.shared_mount, cluster.user)
    return _run(host, ("shared drive", lambda: ensure_mounted(host.as_root(), mount, password)))


def compare_drive(hosts: Sequence[Host], cluster: ClusterFacts) -> None:
    """Prove that all hosts mount the same drive."""
    on_all(hosts, wait_for_ssh)
    prove_same(hosts, str(cluster.shared_mount), cluster.mark)


def prepare_queue(login: Host, cluster: ClusterFacts) -> None:
    """Have a site's queue checked and its modules written down."""
    wait_for_ssh(login)
    queue.prepare(login, cluster)


def leave_queue(login: Host, cluster: ClusterFacts) -> str:
    """Delete every job of the stack; return what was deleted, after the queue has shown that none is left."""
    wait_for_ssh(login)
    owner = str(cluster.owner)
    jobs = queue.jobs_of(login, owner)
    unclear = queue.leave(login, [record for _, record in jobs])
    queue.forget_secrets(login, owner)
    queue.end_rental(login, owner)
    for what, why in unclear.items():
        note(f"not proved on {what}: {why}")
    deleted = ", ".join(job.number for job, _ in jobs)
    return f"deleted job {deleted}" if deleted else "the queue has no job with the stack's mark"


def mount_volume(host: Host, cluster: ClusterFacts) -> list[str]:
    """Mount the data disk and move Docker's storage to it; return the steps that changed something."""
    disk = DataDisk(cluster.data_disk_gb, cluster.mount_point, cluster.mark)
    return _run(
        host,
        ("data disk", lambda: ensure_data_disk(host, disk)),
        ("Docker's storage", lambda: ensure_docker_storage(host, cluster.mount_point)),
    )


def bring_image(
    hosts: Sequence[Host], cluster: ClusterFacts, digests: Path, registry_key: str | None = None
) -> list[str]:
    """Provide the same training image on every host; return what was done.

    One host pulls and builds. A replaced launcher gets the image that the others already run.

    Args:
        digests: the folder of this computer where digests of base images are kept.
        registry_key: the exported key, used if the container names no key file.
    """
    container, key = cluster.container, cluster.rank_key_file
    on_all(hosts, wait_for_ssh)
    tag, launcher = container.tag, hosts[0]
    ids_before = [image_id(host, tag) for host in hosts]
    keepers = [host for host, image in zip(hosts, ids_before, strict=True) if image]
    changes = []
    if launcher not in keepers and keepers:
        distribute(keepers[0], [launcher], container, key)
        changes.append(f"{launcher.facts.name} has it from {keepers[0].facts.name}")
    elif ensure_built(launcher, container, digests, registry_key):
        changes.append(f"built on {launcher.facts.name}")
    wanted_id = image_id(launcher, tag)
    lacking = [host for host in hosts if image_id(host, tag) != wanted_id]
    if lacking:
        distribute(launcher, lacking, container, key)
        changes.append(f"copied to {', '.join(host.facts.name for host in lacking)}")
    return changes


def start_container(host: Host, cluster: ClusterFacts) -> list[str]:
    """Write the rank files and start the container; return the steps that changed something."""
    container, key = cluster.container, cluster.rank_key_file
    return _run(
        host,
        ("files of the ranks", lambda: ensure_rank_files(host, container, key)),
        ("training container", lambda: ensure_container(host, container, cluster.mount_point)),
    )


def _ensure_folder(root: Host, cluster: ClusterFacts) -> bool:
    """Give the user the folder where runs lie."""
    if root.run(("stat", "-c", "%U", cluster.mount_point), accept=(0, 1)).stdout.strip() == cluster.user:
        return False
    root.run(("install", "-d", "-o", cluster.user, cluster.mount_point))
    return True


def _run(host: Host, *steps: tuple[str, Callable[[], bool | None]]) -> list[str]:
    wait_for_ssh(host)
    changed = []
    for name, step in steps:
        note(f"{host.facts.name}: {name} ...")
        if step():
            changed.append(name)
    return changed
