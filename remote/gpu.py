"""The NVIDIA driver and Docker with its ``nvidia`` runtime: used where present, installed on a stock Ubuntu 18.04."""

from __future__ import annotations

import json

from launchers.rendering import render
from remote.host import Host, LoginRefusedError, RemoteError, UnreachableError
from remote.ssh_ready import wait_for_ssh
from remote.system import has_command, wait_for_apt
from remote.waiting import wait_until

RUNTIME = "nvidia"
INSTALL_TIMEOUT_S = 1800.0
DOCKER_TIMEOUT_S = 60.0
REBOOT_TIMEOUT_S = 300.0
INSTALLABLE = "18.04"
DRIVER_BRANCH = "418"  # The branch that the 19.05 images were released for; it knows P100 and V100.


def ensure_gpu(host: Host, slots: int) -> bool:
    """Make ``slots`` GPUs and the container runtime usable; return whether anything changed."""
    changed = _ensure_docker(host)
    changed = _ensure_driver(host) or changed
    seen = host.run(("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")).stdout.split("\n")
    count = len([line for line in seen if line.strip()])
    if count < slots:
        raise RemoteError(
            f"counting the GPUs of {host}: nvidia-smi shows {count}, the flavor has {slots}. Cancel this machine: "
            "make down, then make up orders another one."
        )
    return changed


def docker_answers(host: Host) -> bool:
    """Return whether the Docker daemon answers."""
    return host.run(("docker", "version", "--format", "{{.Server.Version}}"), accept=(0, 1)).exit_code == 0


def _ensure_docker(host: Host) -> bool:
    if has_command(host, "docker"):
        wait_until(f"Docker on {host}", lambda: docker_answers(host), timeout_s=DOCKER_TIMEOUT_S, usual_s=5)
        if RUNTIME in json.loads(host.run(("docker", "info", "--format", "{{json .Runtimes}}")).stdout):
            return False
    _install(host, "install_docker.sh.j2", "Docker and its nvidia runtime")
    return True


def _ensure_driver(host: Host) -> bool:
    if has_command(host, "nvidia-smi") and host.run(("nvidia-smi",), accept=range(256)).exit_code == 0:
        return False
    _install(host, "install_driver.sh.j2", "the NVIDIA driver", branch=DRIVER_BRANCH)
    if host.run(("nvidia-smi",), accept=range(256)).exit_code != 0:  # The old module may still be loaded.
        _reboot(host)
    return True


def _install(host: Host, template: str, what: str, **inputs: str) -> None:
    release = host.read("/etc/os-release") or ""
    if f'VERSION_ID="{INSTALLABLE}"' not in release or "ID=ubuntu" not in release:
        raise RemoteError(
            f"installing {what} on {host}: it is missing there, and the system is not Ubuntu {INSTALLABLE}, the only one "
            "for which we know how. Choose cluster.os UBUNTU_18_64, or an image that has it."
        )
    wait_for_apt(host)
    # Not on standard input: what the packages' own scripts read there would be missing from ours.
    host.run(("bash", "-c", render(template, **inputs)), timeout_s=INSTALL_TIMEOUT_S)


def _reboot(host: Host) -> None:
    before = host.read("/proc/sys/kernel/random/boot_id")
    host.run(("sh", "-c", "(sleep 1; reboot) >/dev/null 2>&1 &"))

    def rebooted() -> bool:
        host.close()
        try:
            return host.read("/proc/sys/kernel/random/boot_id") != before
        except (UnreachableError, LoginRefusedError):
            return False

    wait_until(f"{host} to come back from its reboot", rebooted, timeout_s=REBOOT_TIMEOUT_S, usual_s=90)
    wait_for_ssh(host)
