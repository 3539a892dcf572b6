"""Driver, container runtime, time and packages: used where present, installed only where we know how."""

import fcntl
import json
import subprocess
import sys

import pytest
from fake_machine import FakeMachine

from microcluster.core.polling import NotReadyError
from microcluster.jobs.cluster_facts import ClusterFacts
from microcluster.remote import gpu, steps, system
from microcluster.remote.docker import DAEMON_FILE
from microcluster.remote.errors import CommandError, Completed, RemoteError
from microcluster.remote.gpu import ensure_gpu, ensure_requirements
from microcluster.remote.system import APT_IS_FREE, ensure_system

pytestmark = pytest.mark.usefixtures("no_pauses")
UBUNTU, XENIAL, DEBIAN = "ubuntu 18.04", "ubuntu 16.04", "debian 12"
DOCKER_PACKAGES = ["docker-ce", "docker-ce-cli", "containerd.io", "nvidia-docker2"]
LOCKED = "E: Could not get lock /var/lib/dpkg/lock-frontend - open (11: Resource temporarily unavailable)"


class Bare(FakeMachine):
    """A machine on which only some commands are installed; apt-get installs what it is told."""

    def __init__(self, *missing: str, gpus: int = 2, system: str = UBUNTU, clock: float = 1000.0):
        super().__init__()
        self.missing, self.gpus, self.clock, self.system = set(missing), gpus, clock, system
        self.python, self.docker = "3.6", "Docker version 19.03.1, build 74b1e89"
        self.asked_apt, self.apt_is_free_at = 0, 1
        self.apt_ends: list[tuple[int, str]] = []
        self.own_daemon_file, self.toolkit, self.persistent = False, "", False
        self.pm_code, self.smi_code, self.smi_words = 0, 0, ""

    def _sh(self, words, stdin):
        if words[3:4] == ("has",):
            return (127 if words[4] in self.missing else 0), ""
        if words[3:4] == ("provided",):
            return self._brought()
        return super()._sh(words, stdin)

    def _brought(self):
        has = {name: "" if name in self.missing else value for name, value in self._all().items()}
        return f"system={self.system}\n" + "".join(f"{name}={value}\n" for name, value in has.items())

    def _all(self):
        runtimes = {"nvidia": {}, "runc": {}} if "nvidia" in self.files.get(DAEMON_FILE, "") else {"runc": {}}
        known = json.dumps(runtimes) if "docker" not in self.missing else ""
        return {
            "python": self.python,
            "apt": "/usr/bin/apt-get",
            "absent": " ".join(
                {"python3" if each == "python" else each for each in self.missing} & set(system.COMMANDS)
            ),
            "docker": self.docker,
            "runtimes": known,
            "toolkit": self.toolkit,
            "driver": "works",
        }

    def _bash(self, words, stdin):
        self.changes.append("sources")

    def _uname(self, words, stdin):
        return "4.15.0-200-generic\n"

    def _modprobe(self, words, stdin):
        return ""

    def _nvidia_smi(self, words, stdin):
        if words[1:] == ("-pm", "1"):
            self.persistent = True
            return self.pm_code, "All done.\n"
        return self.smi_code, "Tesla P100-PCIE-16GB, 16280, 440.118.02, 0\n" * self.gpus + self.smi_words

    def _env(self, words, stdin):
        if "--configure" in words:
            self.changes.append("configure")
            return ""
        if self.apt_ends:
            code, said = self.apt_ends.pop(0)
            if code:
                return code, said
        packages = list(words[words.index("--no-install-recommends") + 1 :]) if "install" in words else ["update"]
        self.changes += packages
        if packages == DOCKER_PACKAGES:
            self.missing -= {"docker"}
            if not self.own_daemon_file:
                self.files[DAEMON_FILE] = '{"runtimes": {"nvidia": {}}}'
        elif packages[0].startswith("nvidia-headless"):
            self.missing -= {"driver"}
        elif packages != ["update"]:
            self.missing.clear()
        return ""

    def _python3(self, words, stdin):
        self.asked_apt += 1
        return (1 if self.asked_apt < self.apt_is_free_at else 0), ""

    def _date(self, words, stdin):
        return f"{self.clock:.3f}"

    def run(self, argv, **options):
        words = ("nvidia_smi", *argv[1:]) if argv[0] == "nvidia-smi" else argv
        done = super().run(words, **options)
        return Completed(done.exit_code, "", done.stdout) if argv[0] == "env" else done


def test_a_machine_that_has_everything_is_left_as_it_is():
    machine = Bare()
    assert not ensure_requirements(machine)
    assert not ensure_gpu(machine, 2, "418")
    assert not ensure_system(machine, lambda: 1000.0)
    assert machine.changes == []
    older = Bare(system=XENIAL, gpus=1)
    older.python, older.docker = "3.5", "Docker version 18.09.7, build 2d0083d"
    assert not ensure_requirements(older)
    with pytest.raises(RemoteError, match="nvidia-smi shows 1, the flavor has 2"):
        ensure_gpu(older, 2, "418")


def test_packages_that_ubuntu_lacks_are_installed_and_dpkg_asks_nothing():
    machine, calls = Bare("docker", "driver"), []
    apt = machine._env
    machine._env = lambda words, stdin: calls.append(words) or apt(words, stdin)
    machine.files.pop(DAEMON_FILE)
    assert not ensure_requirements(machine)
    assert ensure_gpu(machine, 2, "418")
    parts = ["sources", "docker-ce", "nvidia-headless-418-server"]
    assert [change for change in machine.changes if change in parts] == parts
    assert "linux-headers-4.15.0-200-generic" in machine.changes
    assert calls and all("Dpkg::Options::=--force-confold" in words for words in calls)


@pytest.mark.parametrize("code", [0, 3])
def test_the_driver_stays_loaded_on_a_rented_machine_where_it_can(code):
    machine = Bare()
    machine.pm_code = code
    ensure_gpu(machine, 2, "418")
    assert machine.persistent


def test_on_a_machine_of_a_user_root_keeps_the_driver_loaded(monkeypatch):
    for step in ("wait_for_ssh", "ensure_firewall", "ensure_key_login", "ensure_system", "_ensure_folder"):
        monkeypatch.setattr(steps, step, lambda *words: None)
    machine, root = Bare(), Bare()
    machine.as_root, machine._sudo = lambda: root, lambda words, stdin: ""
    steps.prepare_machine(machine, ClusterFacts(stack="s", mark="m", slots=2))
    assert root.persistent and not machine.persistent


def test_too_few_gpus_are_said_with_the_words_of_the_tool():
    machine = Bare(gpus=1)
    machine.smi_code, machine.smi_words = (
        15,
        "Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost.\n",
    )
    with pytest.raises(
        RemoteError, match=r"nvidia-smi shows 1, the flavor has 2; it says: Unable.*lost\. \(exit code 15\)"
    ):
        ensure_gpu(machine, 2, "418")


def test_a_sentence_is_no_gpu_and_a_warning_takes_none_away():
    machine = Bare(gpus=0)
    machine.smi_code, machine.smi_words = 6, "No devices were found\n"
    with pytest.raises(RemoteError, match=r"shows 0, the flavor has 1; it says: No devices were found \(exit code 6\)"):
        ensure_gpu(machine, 1, "418")
    machine = Bare()
    machine.smi_code, machine.smi_words = 14, "WARNING: infoROM is corrupted at gpu 0000:B3:00.0\n"
    assert not ensure_gpu(machine, 2, "418")


@pytest.mark.parametrize(("code", "driver"), [(0, "works"), (14, "works"), (9, None)])
def test_a_driver_works_although_its_tool_warns(tmp_path, code, driver):
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    asked = subprocess.run(
        ("/bin/sh", "-c", gpu.FACTS), env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert dict(line.split("=", 1) for line in asked.stdout.splitlines()).get("driver") == driver


def test_a_host_that_was_used_with_gpus_alone_gets_the_runtime_registered():
    machine = Bare(system=DEBIAN)
    machine.files[DAEMON_FILE], machine.toolkit = "{}", "/usr/bin/nvidia-container-runtime"
    assert not ensure_requirements(machine)
    assert ensure_gpu(machine, 2, "418")
    assert "nvidia" in json.loads(machine.files[DAEMON_FILE])["runtimes"]
    assert not set(DOCKER_PACKAGES) & set(machine.changes)


def test_an_image_keeps_its_own_docker_configuration_and_gets_the_runtime():
    machine = Bare("docker")
    machine.own_daemon_file = True
    machine.files[DAEMON_FILE] = '{"log-driver": "journald"}'
    assert ensure_gpu(machine, 2, "418")
    settings = json.loads(machine.files[DAEMON_FILE])
    assert settings["log-driver"] == "journald"
    assert settings["runtimes"]["nvidia"]["path"] == "nvidia-container-runtime"


def test_everything_that_an_image_lacks_is_named_at_once_before_any_change():
    machine = Bare("driver", system=DEBIAN)
    machine.python, machine.docker = "3.4", "Docker version 1.12.6, build 78d1802"
    machine.files[DAEMON_FILE] = "{}"
    with pytest.raises(RemoteError) as refused:
        ensure_requirements(machine)
    for named in (
        "gpu-0",
        "Python 3.4 instead of 3.5 or newer",
        "Docker version 1.12.6 instead of 17.09 or newer",
        "no nvidia runtime in Docker (nvidia-container-toolkit) and no NVIDIA driver that works",
        "Ubuntu 18.04 only, not on debian 12",
        "cluster.os UBUNTU_18_64",
        "cluster.image",
    ):
        assert named in str(refused.value)
    assert machine.changes == []


def test_with_apt_only_the_missing_command_is_installed():
    machine = Bare("curl", "wipefs")
    assert not ensure_requirements(Bare("curl", "python")) and not ensure_requirements(machine)
    assert ensure_system(machine, lambda: 1000.0)
    assert machine.changes == ["update", "curl", "util-linux"]


def test_a_machine_without_apt_is_refused_with_missing_commands_and_packages():
    refused = pytest.raises(RemoteError, ensure_requirements, Bare("python", "wipefs", "apt"))
    for named in ("python3", "wipefs", "(of python3, util-linux), and no apt-get to install them", "cluster.image"):
        assert named in str(refused.value)


def test_the_question_what_a_machine_brings_names_the_commands_that_it_lacks(tmp_path):
    for name in {*system.COMMANDS, "python3"} - {"wipefs", "cmp"}:
        (tmp_path / name).symlink_to("/bin/true")
    argv = ("/bin/sh", "-c", gpu.FACTS, "provided", *system.COMMANDS)
    asked = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    lines = dict(line.split("=", 1) for line in asked.stdout.splitlines())
    assert (sorted(lines["absent"].split()), lines["apt"]) == (["cmp", "wipefs"], "")


def test_a_docker_that_does_not_answer_yet_is_waited_for():
    machine = Bare()
    answers = iter([machine._brought().replace('{"nvidia": {}, "runc": {}}', "null"), machine._brought()])
    machine._brought = lambda: next(answers)
    assert not ensure_requirements(machine)
    assert next(answers, "asked twice") == "asked twice"


def halfway(machine):
    """Let a lost connection have left Docker's programs without the daemon that apt sets up last."""
    plain = machine._brought
    machine._brought = lambda: plain() if DOCKER_PACKAGES[0] in machine.changes else _without_daemon(plain())
    machine.files.pop(DAEMON_FILE)
    return machine


def _without_daemon(brought):
    return "".join(
        f"{line}\n" if not line.startswith("runtimes=") else "runtimes=null\n" for line in brought.splitlines()
    )


def test_an_interrupted_installation_of_docker_is_continued(monkeypatch):
    monkeypatch.setattr(gpu, "DOCKER_TIMEOUT_S", 0)
    machine = halfway(Bare())
    assert not ensure_requirements(machine)
    assert ensure_gpu(machine, 2, "418")
    assert set(DOCKER_PACKAGES) <= set(machine.changes)


def test_a_silent_docker_is_refused_with_advice_if_we_cannot_install_it(monkeypatch):
    monkeypatch.setattr(gpu, "DOCKER_TIMEOUT_S", 0)
    with pytest.raises(RemoteError, match="fab ssh gpu-0 -- journalctl -u docker"):
        ensure_requirements(halfway(Bare(system=DEBIAN)))


BROKEN_OFF = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'"


@pytest.mark.parametrize(
    ("free_at", "ends", "asked", "changes"),
    [
        (2, [], 3, ["update", "curl"]),
        (1, [(0, ""), (100, LOCKED), (100, LOCKED)], 4, ["update", "curl"]),
        (1, [(0, ""), (100, BROKEN_OFF)], 3, ["update", "configure", "curl"]),
    ],
    ids=["a machine that updates itself", "somebody who was faster", "an installation that was broken off"],
)
def test_another_installation_is_let_finish_and_completed_before_ours(free_at, ends, asked, changes):
    machine = Bare("curl")
    machine.apt_is_free_at, machine.apt_ends = free_at, ends
    assert ensure_system(machine, lambda: 1000.0)
    assert (machine.asked_apt, machine.changes) == (asked, changes)


def test_waiting_for_other_installations_ends_and_other_failures_end_at_once(monkeypatch):
    machine = Bare("curl")
    machine.apt_ends = [(100, "E: Unable to locate package curl")]
    with pytest.raises(CommandError, match="Unable to locate package"):
        ensure_system(machine, lambda: 1000.0)
    monkeypatch.setattr("microcluster.remote.system.APT_TIMEOUT_S", 0)
    machine.apt_is_free_at = 10**9
    with pytest.raises(NotReadyError, match="other installations on gpu-0"):
        ensure_system(machine, lambda: 1000.0)


def test_a_held_lock_of_apt_is_distinguished_from_a_free_one(tmp_path):
    lock = tmp_path / "lock"
    ask = (sys.executable, "-c", APT_IS_FREE, str(lock), str(tmp_path / "missing"))
    with lock.open("a") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert subprocess.run(ask, capture_output=True, check=False).returncode == 1
    assert subprocess.run(ask, check=False).returncode == 0


class Kept(Bare):
    """A machine whose clock is 900 s behind and that a time server sets ``after`` so many looks at it."""

    def __init__(self, after: int, says: str = "no"):
        super().__init__(clock=100.0)
        self.after, self.says, self.keeps = after, says, False

    def _test(self, words, stdin):
        return (0, "") if words[2] == "/run/systemd/system" else super()._test(words, stdin)

    def _timedatectl(self, words, stdin):
        self.keeps = self.keeps or words[1:] == ("set-ntp", "true")
        return f"System clock synchronized: {self.says}\n"

    def _date(self, words, stdin):
        self.after -= self.keeps
        return super()._date(words, stdin) if self.after > 0 else "1000.5"


def test_a_clock_that_a_time_server_sets_is_waited_for():
    machine = Kept(after=3)
    assert ensure_system(machine, lambda: 1000.0)
    assert machine.after == 0
    assert ensure_system(Kept(after=9**9, says="yes"), lambda: 1000.0)


def test_a_clock_that_no_time_server_sets_stops_before_anything_is_started(monkeypatch):
    monkeypatch.setattr(system, "CLOCK_TIMEOUT_S", 0.0)
    with pytest.raises(RemoteError, match="-900 s off, and no time server has answered.*fab ssh gpu-0 -- date -s TIME"):
        ensure_system(Kept(after=9**9), lambda: 1000.0)
    with pytest.raises(RemoteError, match="-100 s off"):  # Nobody keeps this one.
        ensure_system(Bare(clock=900.0), lambda: 1000.0)


def test_a_foreign_apt_key_is_a_sentence_and_nothing_is_installed(monkeypatch):
    machine = Bare("docker", "driver")
    said = "https://x.test/gpg has no key with the fingerprint 9DC8"
    monkeypatch.setattr(machine, "_bash", lambda words, stdin: (gpu.KEY_REFUSED, "", f"gpg: noise\n{said}\n"))
    with pytest.raises(RemoteError, match=rf"on gpu-0 \(.*\): {said}. No repository was added and nothing installed"):
        ensure_gpu(machine, 2, "418")
    assert not [change for change in machine.changes if "docker" in change or "nvidia" in change]
