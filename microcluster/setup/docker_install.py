"""Installs and starts Docker, and installs the other programs of the local stack."""

import os
import shutil
import subprocess
from pathlib import Path

import docker
import docker.errors
import requests.exceptions

from microcluster.core.home import Home
from microcluster.core.polling import wait_until
from microcluster.setup.errors import CommandFailed
from microcluster.setup.packages import DOCKER_PACKAGE, install, missing_packages, system_path
from microcluster.setup.process import Step, asked, run_logged, tail

PING_TIMEOUT_S = 5
START_LIMIT_S, USUAL_S = 60, 5
SYSTEMD = Path("/run/systemd/system")
REGISTRY_PACKAGE = "docker-registry"
PID_FILES = {"/var/run/docker.pid": "dockerd", "/var/run/docker/containerd/containerd.pid": "containerd"}
"""Pid files of Docker 20.10 and newer, with the process names."""


def ensure(home: Home) -> None:
    """Install missing packages, and start the daemon if none answers."""
    refuse_without_root()
    packages = wanted_packages(missing_packages(), answers=answers(), dockerd=find_dockerd() is not None)
    if packages:
        install(packages, f"The local stack needs {', '.join(packages)}", home)
        if REGISTRY_PACKAGE in packages:
            _disable_service(REGISTRY_PACKAGE, home)
    if not answers():
        _start(home)


def answers() -> bool:
    """Whether a Docker daemon answers."""
    try:
        client = docker.from_env(timeout=PING_TIMEOUT_S)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except (docker.errors.DockerException, requests.exceptions.RequestException):
        return False


def wanted_packages(missing: tuple[str, ...], *, answers: bool, dockerd: bool) -> tuple[str, ...]:
    """Return the packages to install; Docker itself only if no daemon answers or can be started."""
    return missing if answers or dockerd else (DOCKER_PACKAGE, *missing)


def refuse_without_root() -> None:
    """Raise unless the user is root."""
    if os.geteuid() != 0:
        raise CommandFailed(
            "The local stack's machines are containers with disks and networks of their own, which needs root. "
            "Repeat as root, or use a stack with a real account: make preview STACK=p100"
        )


def find_dockerd() -> str | None:
    """Return the program of Docker's daemon, or None."""
    return shutil.which("dockerd", path=system_path(os.environ))


def _start(home: Home) -> None:
    log = home.logs / "dockerd.log"
    if os.environ.get("DOCKER_HOST"):
        raise CommandFailed(
            f"No Docker daemon answers at DOCKER_HOST={os.environ['DOCKER_HOST']}. "
            "Start it, or unset DOCKER_HOST to use this machine's own, then repeat."
        )
    if SYSTEMD.is_dir():
        hint = "See `journalctl -u docker`, then repeat."
        start = ("systemctl", "start", "docker")
        run_logged(Step("starting Docker", "5 s", start, log, hint, START_LIMIT_S), os.environ)
        wait_until("an answer of Docker", answers, timeout_s=START_LIMIT_S, usual_s=USUAL_S)
        return
    for path, program in PID_FILES.items():
        drop_stale_pid(Path(path), program)
    with log.open("ab") as output:
        daemon = subprocess.Popen(
            (find_dockerd() or "dockerd",),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": system_path(os.environ)},
            start_new_session=True,
        )
    wait_until(
        "an answer of Docker", lambda: _alive(daemon, log) and answers(), timeout_s=START_LIMIT_S, usual_s=USUAL_S
    )


def drop_stale_pid(path: Path, program: str) -> None:
    """Remove a killed daemon's pid file: if another process has that pid, a new daemon does not start."""
    try:
        pid = int(path.read_text())
    except (OSError, ValueError):
        return
    try:
        living = Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        living = ""
    if living != program:
        path.unlink(missing_ok=True)


def _alive(daemon: subprocess.Popen[bytes], log: Path) -> bool:
    if daemon.poll() is not None:
        raise CommandFailed(
            f"Starting Docker: dockerd ended (exit code {daemon.returncode}). Its last lines:\n{tail(log)}\n"
            "Start Docker by hand, then repeat."
        )
    return True


def _disable_service(name: str, home: Home) -> None:
    """Disable the package's service, which would use port 5000; the emulator starts its own registries."""
    hint = f"Stop the service {name} by hand, then repeat."
    for argv in (("service", name, "stop"), ("update-rc.d", name, "disable")):
        program = shutil.which(argv[0], path=system_path(os.environ))
        # Without an init system the service does not run after installation, and stopping it would fail.
        if program and (argv[-1] != "stop" or asked((program, name, "status"), PING_TIMEOUT_S).returncode == 0):
            what = f"disabling the service of {name}; the emulator starts its own"
            run_logged(Step(what, "1 s", (program, *argv[1:]), home.logs / "service.log", hint), os.environ)
