"""The NVIDIA driver and Docker with its ``nvidia`` runtime: installed on Ubuntu 18.04 if they are missing."""

from core.waiting import wait_until
from microcluster.jobs.rendering import render
from microcluster.remote.docker_daemon import daemon_settings, restart_docker, write_daemon_settings
from microcluster.remote.errors import LoginRefusedError, RemoteError, UnreachableError
from microcluster.remote.host import Host
from microcluster.remote.requirements import RUNTIME, provided
from microcluster.remote.ssh_ready import wait_for_ssh
from microcluster.remote.system import apt_get

INSTALL_TIMEOUT_S = 1800.0
REBOOT_TIMEOUT_S = 300.0
FOR_SOURCES = ("apt-transport-https", "ca-certificates", "curl", "gnupg")
DOCKER = ("docker-ce", "docker-ce-cli", "containerd.io", "nvidia-docker2")
INSTALL = ("install", "--no-install-recommends")


def ensure_gpu(host: Host, slots: int, driver: str) -> bool:
    """Make ``slots`` GPUs and the container runtime usable; return whether anything changed."""
    found = provided(host)
    if not found.has_runtime:
        _install_docker(host)
    if not found.has_driver:
        _install_driver(host, driver)
    count_gpus(host, slots)
    return not (found.has_runtime and found.has_driver)


def count_gpus(host: Host, slots: int) -> bool:
    """Raise unless the machine shows ``slots`` GPUs; changes nothing."""
    seen = host.run(("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")).stdout.split("\n")
    count = len([line for line in seen if line.strip()])
    if count < slots:
        raise RemoteError(
            f"counting the GPUs of {host}: nvidia-smi shows {count}, the flavor has {slots}. Cancel this machine: "
            "make down, then make up orders another one."
        )
    return False


def _install_docker(host: Host) -> None:
    apt_get(host, "update")
    apt_get(host, *INSTALL, *FOR_SOURCES)
    # Not on standard input, which the programs in the script may read.
    host.run(("bash", "-c", render("docker_sources.sh.j2")))
    apt_get(host, "update")
    apt_get(host, *INSTALL, *DOCKER, timeout_s=INSTALL_TIMEOUT_S)
    settings = daemon_settings(host)
    if RUNTIME not in settings.get("runtimes", {}):  # The image's own file was kept.
        runtime = {"path": "nvidia-container-runtime", "runtimeArgs": []}
        runtimes = {**settings.get("runtimes", {}), RUNTIME: runtime}
        write_daemon_settings(host, {**settings, "runtimes": runtimes})
    restart_docker(host)
    if not provided(host).has_runtime:
        raise RemoteError(
            f"installing Docker and its {RUNTIME} runtime on {host}: Docker runs and does not have the runtime. "
            f"Check it: fab ssh {host.facts.name}, then docker info"
        )


def _install_driver(host: Host, driver: str) -> None:
    release = host.run(("uname", "-r")).stdout.strip()
    apt_get(host, "update")
    apt_get(host, *INSTALL, f"linux-headers-{release}")
    packages = (f"nvidia-headless-{driver}-server", f"nvidia-utils-{driver}-server")
    apt_get(host, *INSTALL, *packages, timeout_s=INSTALL_TIMEOUT_S)
    host.run(("modprobe", "nvidia"), accept=range(256))
    if not provided(host).has_driver:  # The old module may still be loaded.
        _reboot(host)


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
