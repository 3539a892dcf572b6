"""Requirements of a machine for containers on its GPUs: all that is missing named together, and installed on Ubuntu 18.04."""

import re
from dataclasses import dataclass, fields

from agent.nodes.node_facts import GPU_ARGV, read_gpus
from microcluster.core.polling import NotReadyError, wait_until
from microcluster.jobs.rendering import render
from microcluster.remote.docker import daemon_settings, restart_docker, write_daemon_settings
from microcluster.remote.errors import LoginRefusedError, RemoteError, UnreachableError
from microcluster.remote.host import Host, wait_for_ssh
from microcluster.remote.system import COMMANDS, apt_get

RUNTIME = "nvidia"
INSTALLABLE = ("ubuntu", "18.04")
"""The system on which we can install Docker and the driver."""
OLDEST_PYTHON = "3.5"
OLDEST_DOCKER = "17.09"
"""The first with `docker login --password-stdin` and a build on the host's network."""
DOCKER_TIMEOUT_S = 60.0
# It must run on Ubuntu 16.04. systemd is not asked for, as every step has a way without. A missing program is an empty value.
# With exit code 14 nvidia-smi warns of an infoROM, and the driver works.
FACTS = """. /etc/os-release 2>/dev/null; echo "system=$ID $VERSION_ID"
echo "python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)"
echo "apt=$(command -v apt-get)"
echo "absent=$(for each; do command -v "$each" >/dev/null || printf '%s ' "$each"; done)"
echo "docker=$(docker --version 2>/dev/null)"
echo "runtimes=$(docker info --format '{{json .Runtimes}}' 2>/dev/null)"
echo "toolkit=$(docker info >/dev/null 2>&1 && command -v nvidia-container-runtime)"
nvidia-smi >/dev/null 2>&1; case $? in 0|14) echo driver=works ;; esac
"""
INSTALL_TIMEOUT_S = 1800.0
REBOOT_TIMEOUT_S = 300.0
FOR_SOURCES = ("apt-transport-https", "ca-certificates", "curl", "gnupg")
DOCKER = ("docker-ce", "docker-ce-cli", "containerd.io", "nvidia-docker2")
INSTALL = ("install", "--no-install-recommends")
APT_KEYS = {"docker": "9DC858229FC7DD38854AE2D88D81803C0EBFCD88", "nvidia": "C95B321B61E88C1809C4F759DDCAE044F796ECB0"}
"""The fingerprints that the vendors' documentation names."""
KEY_REFUSED = 43


@dataclass(frozen=True)
class Provided:
    """Parts that a machine has; an empty text for a missing one."""

    system: str
    python: str
    apt: str
    absent: str
    docker: str
    runtimes: str
    toolkit: str
    driver: str

    @property
    def has_runtime(self) -> bool:
        return f'"{RUNTIME}":' in self.runtimes


def ensure_requirements(host: Host) -> None:
    """Raise with everything that is missing and that we cannot install; changes nothing."""
    lacking = lacks(_provided_with_docker(host))
    if lacking:
        raise RemoteError(
            f"checking the requirements on {host}: {'; '.join(lacking)}. Choose cluster.os UBUNTU_18_64, where we can "
            "install it, or a cluster.image that has it."
        )


def lacks(provided: Provided) -> list[str]:
    """Return parts that are missing or too old and cannot be installed."""
    lacking = []
    if provided.python and _version(provided.python) < _version(OLDEST_PYTHON):
        lacking.append(f"Python {provided.python} instead of {OLDEST_PYTHON} or newer")
    absent = provided.absent.split()
    if absent and not provided.apt:
        packages = sorted({COMMANDS[each] for each in absent})
        lacking.append(f"no {', '.join(absent)} (of {', '.join(packages)}), and no apt-get to install them")
    if provided.docker and _version(provided.docker) < _version(OLDEST_DOCKER):
        lacking.append(f"{provided.docker.partition(',')[0]} instead of {OLDEST_DOCKER} or newer")
    if _is_installable(provided):
        return lacking
    missing = []
    if not provided.docker:
        missing.append("no Docker")
    elif not provided.has_runtime and not provided.toolkit:
        missing.append(f"no {RUNTIME} runtime in Docker (nvidia-container-toolkit)")
    if not provided.driver:
        missing.append("no NVIDIA driver that works")
    if missing:
        lacking.append(
            f"{' and '.join(missing)}, which we can install on Ubuntu {INSTALLABLE[1]} only, not on {provided.system}"
        )
    return lacking


def provided(host: Host) -> Provided:
    """Return the parts that a machine has."""
    lines = host.run(("sh", "-c", FACTS, "provided", *COMMANDS)).stdout.splitlines()
    found = {name: value.strip() for name, _, value in (line.partition("=") for line in lines)}
    return Provided(**{each.name: found.get(each.name, "") for each in fields(Provided)})


def _provided_with_docker(host: Host) -> Provided:
    """Wait for an installed Docker, which may still start after a boot.

    Where we can install, a Docker that never answers was installed incompletely; installing completes it.
    """

    def answered() -> Provided | None:
        found = provided(host)
        return found if found.runtimes not in ("", "null") or not found.docker else None

    try:
        return wait_until(f"Docker on {host}", answered, timeout_s=DOCKER_TIMEOUT_S, usual_s=5)
    except NotReadyError as late:
        found = provided(host)
        if _is_installable(found):
            return found
        raise RemoteError(
            f"{late} Docker is installed there but does not run; see its log: fab ssh {host.facts.name} -- journalctl -u docker, "
            "then run the same command again."
        ) from late


def _is_installable(found: Provided) -> bool:
    return tuple(found.system.split()) == INSTALLABLE


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d{1,6})\.(\d{1,6})", text)
    return tuple(map(int, found.groups())) if found else (0, 0)


def ensure_gpu(host: Host, slots: int, driver: str) -> bool:
    """Make ``slots`` GPUs and the container runtime usable; return whether anything changed."""
    on_machine = provided(host)
    if not on_machine.has_runtime:
        _install_docker(host, on_machine.toolkit)
    if not on_machine.driver:
        _install_driver(host, driver)
    keep_loaded(host)
    count_gpus(host, slots)
    return not (on_machine.has_runtime and on_machine.driver)


def keep_loaded(root: Host) -> None:
    """Keep the driver loaded while nobody computes: else each look loads it anew, and shows a GPU at rest as busy. Not every GPU can."""
    root.run(("nvidia-smi", "-pm", "1"), accept=range(256))


def count_gpus(host: Host, slots: int) -> None:
    """Raise unless the machine shows ``slots`` GPUs; changes nothing."""
    completed = host.run(GPU_ARGV, accept=range(256))
    gpus = read_gpus(completed.exit_code, completed.stdout + completed.stderr)
    if len(gpus["gpus"]) < slots:
        said = f"; it says: {gpus['gpu_words']} (exit code {completed.exit_code})" if gpus["gpu_words"] else ""
        raise RemoteError(
            f"counting the GPUs of {host}: nvidia-smi shows {len(gpus['gpus'])}, the flavor has {slots}{said}. Cancel this "
            "machine: make down, then make up orders another one."
        )


def _install_docker(host: Host, toolkit: str) -> None:
    if not toolkit:  # With it Docker only does not know its runtime yet, which `--gpus` and CDI do not need.
        apt_get(host, "update")
        apt_get(host, *INSTALL, *FOR_SOURCES)
        # Not on standard input, which the programs in the script may read.
        script = render("docker_sources.sh.j2", **APT_KEYS, refused=KEY_REFUSED)
        completed = host.run(("bash", "-c", script), accept=(0, KEY_REFUSED))
        if completed.exit_code == KEY_REFUSED:
            raise RemoteError(
                f"checking the apt keys of Docker and NVIDIA on {host}: {' '.join(completed.stderr.strip().splitlines()[-1:])}. No "
                "repository was added and nothing installed. Choose a cluster.image that has Docker and its nvidia runtime."
            )
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
    if not provided(host).driver:  # The old module may still be loaded.
        _reboot(host)


def _reboot(host: Host) -> None:
    boot_id = host.read("/proc/sys/kernel/random/boot_id")
    host.run(("sh", "-c", "(sleep 1; reboot) >/dev/null 2>&1 &"))

    def rebooted() -> bool:
        host.close()
        try:
            return host.read("/proc/sys/kernel/random/boot_id") != boot_id
        except (UnreachableError, LoginRefusedError):
            return False

    wait_until(f"{host} to come back from its reboot", rebooted, timeout_s=REBOOT_TIMEOUT_S, usual_s=90)
    wait_for_ssh(host)
