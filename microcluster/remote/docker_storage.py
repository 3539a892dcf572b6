"""Docker's storage on the data disk, configured before the first pull."""

from microcluster.remote.docker_daemon import (
    DAEMON_FILE,
    daemon_settings,
    docker_answers,
    docker_root,
    restart_docker,
    write_daemon_settings,
)
from microcluster.remote.errors import RemoteError
from microcluster.remote.host import Host
from microcluster.remote.system import has_systemd

DROP_IN = "/etc/systemd/system/docker.service.d/microcluster.conf"


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
