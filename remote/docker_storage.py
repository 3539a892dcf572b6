"""Docker's storage on the data disk, decided by the daemon's configuration before the first pull."""

from __future__ import annotations

import json

from remote.gpu import docker_answers
from remote.host import Host, RemoteError
from remote.system import has_systemd
from remote.waiting import wait_until

DAEMON_FILE = "/etc/docker/daemon.json"
DROP_IN = "/etc/systemd/system/docker.service.d/microcluster.conf"
RESTART_TIMEOUT_S = 120.0


def ensure_docker_storage(host: Host, mount_point: str) -> bool:
    """Let Docker keep its images below ``mount_point`` and restart it if it did not; return whether anything changed."""
    systemd = has_systemd(host)
    changed = _ensure_after_mount(host, mount_point) if systemd else False
    wanted = f"{mount_point}/docker"
    text = host.read(DAEMON_FILE) or "{}"
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise RemoteError(
            f"reading {DAEMON_FILE} of {host}: it is no JSON ({error}). Mend or remove it, then go on."
        ) from error
    if settings.get("data-root") != wanted:
        host.run(("mkdir", "-p", DAEMON_FILE.rpartition("/")[0]))
        host.put(DAEMON_FILE, json.dumps({**settings, "data-root": wanted}, indent=2, sort_keys=True) + "\n")
        changed = True
    if not docker_answers(host) or _root(host) != wanted:
        host.run(
            ("systemctl", "restart", "docker") if systemd else ("service", "docker", "restart"),
            timeout_s=RESTART_TIMEOUT_S,
        )
        wait_until(f"Docker on {host}", lambda: docker_answers(host), timeout_s=RESTART_TIMEOUT_S, usual_s=5)
        changed = True
    if _root(host) != wanted:
        raise RemoteError(
            f"moving Docker's storage of {host} to {wanted}: it still uses {_root(host)}. See {DAEMON_FILE} there."
        )
    return changed


def _root(host: Host) -> str:
    return host.run(("docker", "info", "--format", "{{.DockerRootDir}}")).stdout.strip()


def _ensure_after_mount(host: Host, mount_point: str) -> bool:
    """Keep Docker from starting beside the disk, on the small system disk, when the disk comes late."""
    host.run(("mkdir", "-p", DROP_IN.rpartition("/")[0]))
    changed = host.put(DROP_IN, f"[Unit]\nRequiresMountsFor={mount_point}\n")
    if changed:
        host.run(("systemctl", "daemon-reload"))
    return changed
