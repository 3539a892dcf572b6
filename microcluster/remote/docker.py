"""Docker on a machine: its daemon, its storage on the data disk, and the training container."""

import hashlib
import json
import shlex
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from agent.kill_run import RUN_VARIABLE
from agent.run.context import TERMINALS, TERMINALS_OF_THE_MACHINE
from microcluster.core.plain_text import note
from microcluster.core.polling import wait_until
from microcluster.jobs import cluster_facts
from microcluster.jobs.run_spec import container_disk, mounts
from microcluster.remote.answers import read_answer
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.ssh_mesh import FOLDER
from microcluster.remote.system import has_systemd
from microcluster.remote.training_image import PIP_VARIABLES, image_id, inspected

DAEMON_FILE = "/etc/docker/daemon.json"
RESTART_TIMEOUT_S = 120.0
DROP_IN = "/etc/systemd/system/docker.service.d/microcluster.conf"
COMMAND = ("sh", f"{FOLDER}/start.sh")  # By `sh`: Ubuntu mounts /run with noexec.
REMOVE_OURS = 'found=$(docker ps -aq --filter "volume=$1") || exit; [ -z "$found" ] || docker rm -f $found >/dev/null'
SSH_TIMEOUT_S = 300.0
STARTED_AS = "microcluster.started-as"
"""The label of a container with the hash of the words that started it."""
SETUP = "microcluster.setup"
"""The label of a container with the hash of the lines that its runs change it by: those of another run leave nothing in it."""
SHM_BYTES = 1 << 30
LIMITS = {"memlock": -1, "stack": 64 << 20}
"""Limits that NVIDIA's images need: NCCL has its buffers in /dev/shm and locks memory."""
# What the nvidia runtime goes by: NVIDIA's own images set it, and in others there is no GPU without it.
FOR_GPUS = ("-e", "NVIDIA_VISIBLE_DEVICES=all", "-e", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
# The lines of job.setup use the package index that the machine's environment names, as the image's build does.
FOR_PIP = tuple(word for name in PIP_VARIABLES for word in ("-e", name))
SHOW_TERMINALS = """mountpoint -q "$2" || { mkdir -p "$2" && mount --bind "$1" "$2" && {
  mount -o remount,bind,ro,nodev,nosuid,noexec "$2" || { umount "$2"; false; }; }; }"""
"""Script that shows the container when a key was pressed in a terminal of the machine, and lets it open none: `nodev`."""
INSPECTED = TypeAdapter(Annotated[list[dict[str, Any]], Field(min_length=1, max_length=1)])
SEPARATE_DISK = """set -eu; disk=$2 new=$2.new; chmod 755 "$1"; [ ! -d "$disk" ] || exit 0; mkdir -p -m 1777 "$new"; cd "$1"
for name in *; do
  case $name in docker|runs|sent|lost+found|"${disk##*/}"*) ;; *) [ -e "$new/$name" ] || [ ! -e "$name" ] || mv -T -- "$name" "$new/$name" ;; esac
  [ ! -e "$new/$name" ] || [ "$name" = staging ] || ln -sfn -- "$disk/$name" "$name"
done
mv -T "$new" "$disk" """
"""Gives the container a folder of its own on the disk, with the data that lie there; the machine finds these by a link at their old place."""
BUSY = ("sh", "-c", f"grep -qsz '^{RUN_VARIABLE}=' /proc/[0-9]*/environ", "busy")
"""Whether a process bears the mark of a run."""
LISTENS = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)"


def docker_answers(host: Host) -> bool:
    """Return whether the Docker daemon answers."""
    return host.run(("docker", "version", "--format", "{{.Server.Version}}"), accept=(0, 1)).exit_code == 0


def docker_root(host: Host) -> str:
    """Return the folder of Docker's storage."""
    return host.run(("docker", "info", "--format", "{{.DockerRootDir}}")).stdout.strip()


def daemon_settings(host: Host) -> dict[str, Any]:
    """Return the daemon's configuration; empty without a file."""
    try:
        return dict(from_json(host.read(DAEMON_FILE) or "{}"))
    except (ValueError, TypeError) as error:
        raise RemoteError(
            f"reading {DAEMON_FILE} of {host}: it is no JSON ({error}). Fix or remove it, then repeat."
        ) from error


def write_daemon_settings(host: Host, settings: dict[str, Any]) -> None:
    """Write the daemon's configuration, which it reads at the next restart."""
    host.run(("mkdir", "-p", DAEMON_FILE.rpartition("/")[0]))
    host.put(DAEMON_FILE, json.dumps(settings, indent=2, sort_keys=True) + "\n")


def restart_docker(host: Host) -> None:
    """Restart the daemon and return once it answers."""
    argv = ("systemctl", "restart", "docker") if has_systemd(host) else ("service", "docker", "restart")
    host.run(argv, timeout_s=RESTART_TIMEOUT_S)
    wait_until(f"Docker on {host}", lambda: docker_answers(host), timeout_s=RESTART_TIMEOUT_S, usual_s=5)


def ensure_docker_storage(host: Host, mount_point: str) -> bool:
    """Move Docker's storage below ``mount_point``; return whether anything changed."""
    changed = _ensure_after_mount(host, mount_point) if has_systemd(host) else False
    data_root = f"{mount_point}/docker"
    settings = daemon_settings(host)
    if settings.get("data-root") != data_root:
        write_daemon_settings(host, {**settings, "data-root": data_root})
        changed = True
    if not docker_answers(host) or docker_root(host) != data_root:
        restart_docker(host)
        changed = True
    if docker_root(host) != data_root:
        raise RemoteError(
            f"moving Docker's storage of {host} to {data_root}: it still uses {docker_root(host)}. See it: fab ssh {host.facts.name} -- cat {DAEMON_FILE}"
        )
    return changed


def _ensure_after_mount(host: Host, mount_point: str) -> bool:
    """Let Docker wait for the disk, so that it never uses the small system disk."""
    host.run(("mkdir", "-p", DROP_IN.rpartition("/")[0]))
    changed = host.put(DROP_IN, f"[Unit]\nRequiresMountsFor={mount_point}\n")
    if changed:
        host.run(("systemctl", "daemon-reload"))
    return changed


def docker_run(container: cluster_facts.Container, mount_point: str) -> tuple[str, ...]:
    """Return the argv that starts the container, with a label that is another one for every other argv."""
    limits = [word for name, most in LIMITS.items() for word in ("--ulimit", f"{name}={most}")]
    started = (
        *(f"--runtime={container.runtime}", "-d", "--name", container.name, "--net=host", f"--shm-size={SHM_BYTES}"),
        *(*limits, *FOR_GPUS, "-e", f"SSH_PORT={container.ssh_port}"),
        *(("--label", f"{SETUP}={container.setup}", *FOR_PIP) if container.setup else ()),
        *(*mounts(mount_point), "-v", f"{FOLDER}:{FOLDER}:ro"),
        *(container.tag, *COMMAND),
    )
    label = f"{STARTED_AS}={hashlib.sha256(shlex.join(started).encode()).hexdigest()}"
    return ("docker", "run", "--label", label, *started)


def ensure_container(host: Host, container: cluster_facts.Container, mount_point: str) -> bool:
    """Run the container with exactly these options; return whether it was made."""
    existing, image, argv = (
        _inspect(host, container.name),
        image_id(host, container.tag),
        docker_run(container, mount_point),
    )
    if not image:
        raise RemoteError(
            f"starting container {container.name} on {host}: its image {container.tag} is missing. "
            "Distribute it again: pulumi up --replace '**-image-brought'"
        )
    if existing and existing["State"]["Running"] and existing["Image"] == image and _label(existing) in argv:
        _wait_for_sshd(host, container)
        return False
    if (
        existing
        and existing["State"]["Running"]
        and existing["Image"] == image
        and not host.run(BUSY, accept=(0, 1)).exit_code
    ):
        note(f"{host}: container {container.name} goes on as it is, because a run is at work in it")
        return False
    if existing:
        host.run(("docker", "rm", "-f", container.name))
    # One of another kind, which had these machines before, holds the port.
    host.run(("sh", "-c", REMOVE_OURS, "remove", FOLDER))
    mounted = host.run(
        ("sh", "-c", SHOW_TERMINALS, "terminals", TERMINALS, TERMINALS_OF_THE_MACHINE), accept=range(256)
    )
    if mounted.exit_code:
        note(f"{host}: its terminals cannot be watched, so `guard.idle` never acts there: {mounted.stderr.strip()}")
    host.run(("rm", "-f", f"{FOLDER}/ssh_host_ed25519_key"))  # An earlier version has left its machine's key there.
    host.run(("sh", "-c", SEPARATE_DISK, "separate", mount_point, container_disk(mount_point)))
    host.run(argv)
    _wait_for_sshd(host, container)
    return True


def _inspect(host: Host, name: str) -> dict[str, Any] | None:
    text = inspected(host, ("docker", "container", "inspect", name))
    return read_answer(INSPECTED, text, f"asking Docker on {host} for {name}")[0] if text else None


def _label(found: dict[str, Any]) -> str:
    return f"{STARTED_AS}={(found['Config']['Labels'] or {}).get(STARTED_AS)}"


def _wait_for_sshd(host: Host, container: cluster_facts.Container) -> None:
    address = (host.facts.private_address, str(container.ssh_port))

    def listens() -> bool:
        if host.run(("python3", "-c", LISTENS, *address), accept=(0, 1)).exit_code == 0:
            return True
        found = _inspect(host, container.name)
        if not found or not found["State"]["Running"]:
            log = host.run(("docker", "logs", "--tail", "5", container.name), accept=(0, 1))
            raise RemoteError(
                f"starting container {container.name} on {host}: it ended. Its log: {log.stdout}{log.stderr}".strip()
            )
        return False

    wait_until(f"sshd in container {container.name} on {host}", listens, timeout_s=SSH_TIMEOUT_S, usual_s=2)
