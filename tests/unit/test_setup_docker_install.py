"""Docker and the packages beside it: what is installed when, and what is said when it cannot be."""

import os
from pathlib import Path

import pytest

from microcluster.core.home import Home
from microcluster.setup import docker_install, packages
from microcluster.setup.errors import CommandFailed


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path, tmp_path / "cache")
    made.make()
    return made


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_install, "answers", lambda: False)
    monkeypatch.setattr(docker_install, "missing_packages", lambda: ())
    monkeypatch.setattr("os.geteuid", lambda: 0)


def test_docker_is_installed_only_where_no_daemon_answers_or_starts() -> None:
    assert docker_install.wanted_packages(("mmdebstrap",), answers=False, dockerd=False) == ("docker.io", "mmdebstrap")
    assert docker_install.wanted_packages((), answers=False, dockerd=True) == ()
    assert docker_install.wanted_packages(("mmdebstrap",), answers=True, dockerd=False) == ("mmdebstrap",)
    missing = packages.missing_packages(lambda command: None if command in ("ip", "tc") else "/usr/bin/x")
    assert missing == ("iproute2",), "once, however many of its commands are missing"


@pytest.mark.parametrize(
    ("has_apt", "why"), [(True, "because this is not root"), (False, "because this is neither Debian nor Ubuntu")]
)
def test_packages_are_installed_on_debian_as_root_only(home, monkeypatch, has_apt: bool, why: str) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(Path, "exists", lambda path: has_apt)
    with pytest.raises(CommandFailed, match=f"{why}.*apt-get install tc"):
        packages.install(("tc",), "It is missing", home)


def test_a_client_without_a_daemon_is_no_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho Docker version 28\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert not docker_install.answers()


@pytest.mark.usefixtures("no_daemon")
def test_a_named_daemon_that_does_not_answer_is_the_persons_to_start(home, monkeypatch):
    monkeypatch.setattr(docker_install, "find_dockerd", lambda: "/usr/sbin/dockerd")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    with pytest.raises(
        CommandFailed, match="No Docker daemon answers at DOCKER_HOST=tcp://127.0.0.1:1. Start it, or unset"
    ):
        docker_install.ensure(home)


@pytest.mark.usefixtures("no_daemon")
def test_a_daemon_that_ends_at_once_is_quoted(home, tmp_path, monkeypatch):
    daemon = tmp_path / "dockerd"
    daemon.write_text("#!/bin/sh\necho no space left on device\nexit 7\n")
    daemon.chmod(0o755)
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(docker_install, "SYSTEMD", tmp_path / "no-systemd")
    monkeypatch.setattr(docker_install, "find_dockerd", lambda: str(daemon))
    with pytest.raises(CommandFailed, match=r"dockerd ended \(exit code 7\).*\n.*no space left on device"):
        docker_install.ensure(home)


def test_without_root_the_sentence_names_what_works_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(CommandFailed, match="needs root.*make preview STACK=p100"):
        docker_install.refuse_without_root()


def test_a_killed_daemons_process_id_is_forgotten_and_a_living_ones_kept(tmp_path: Path) -> None:
    mine = Path("/proc/self/comm").read_text().strip()
    for text, program, kept in (
        (str(os.getpid()), "dockerd", False),
        (str(os.getpid()), mine, True),
        ("99999999", "dockerd", False),
    ):
        file = tmp_path / "docker.pid"
        file.write_text(text)
        docker_install.drop_stale_pid(file, program)
        assert file.exists() is kept
    docker_install.drop_stale_pid(tmp_path / "none.pid", "dockerd")


@pytest.mark.parametrize(("status", "told"), [(3, ["disable"]), (0, ["stop", "disable"])])
def test_a_service_of_a_package_is_switched_off_running_or_not(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, told: list[str]
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    # As Debian's: stopping what does not run fails.
    service = f'case $2 in status) exit {status} ;; *) echo "$2" >>{tmp_path}/told; exit {1 if status else 0} ;; esac'
    for name, body in (("service", service), ("update-rc.d", f'echo "$2" >>{tmp_path}/told')):
        (programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    docker_install._disable_service("docker-registry", home)
    assert (tmp_path / "told").read_text().split() == told
