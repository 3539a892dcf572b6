"""The Docker daemon of a machine: status, configuration, restart, and its storage on the data disk."""

import json
from typing import Any

from core.waiting import wait_until
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.system import has_systemd

DAEMON_FILE = "/etc/docker/daemon.json"
RESTART_TIMEOUT_S = 120.0
DROP_IN = "/etc/systemd/system/docker.service.d/microcluster.conf"


def docker_answers(host: Host) -> bool:
    """Return whether the Docker daemon answers."""
    return host.run(("docker", "version", "--format", "{{.Server.Version}}"), accept=(0, 1)).exit_code == 0


def docker_root(host: Host) -> str:
    """Return the folder of Docker's storage."""
    return host.run(("docker", "info", "--format", "{{.DockerRootDir}}")).stdout.strip()


def daemon_settings(host: Host) -> dict[str, Any]:
    """Return the daemon's configuration; empty without a file."""
    try:
        return json.loads(host.read(DAEMON_FILE) or "{}")
    except ValueError as error:
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
    wanted = f"{mount_point}/docker"
    settings = daemon_settings(host)
    if settings.get("data-root") != wanted:
        write_daemon_settings(host, {**settings, "data-root": wanted})
        changed = True
    if not docker_answers(host) or docker_root(host) != wanted:
        restart_docker(host)
        changed = True
    if docker_root(host) != wanted:
        raise RemoteError(
            f"moving Docker's storage of {host} to {wanted}: it still uses {docker_root(host)}. See {DAEMON_FILE} there."
        )
    return changed


def _ensure_after_mount(host: Host, mount_point: str) -> bool:
    """Let Docker wait for the disk, so that it never uses the small system disk."""
    host.run(("mkdir", "-p", DROP_IN.rpartition("/")[0]))
    changed = host.put(DROP_IN, f"[Unit]\nRequiresMountsFor={mount_point}\n")
    if changed:
        host.run(("systemctl", "daemon-reload"))
    return changed
