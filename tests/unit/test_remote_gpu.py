"""Driver, container runtime, time and packages: used where present, installed only where we know how."""

from __future__ import annotations

import fcntl
import subprocess
import sys

import pytest
from fake_machine import FakeMachine

from remote import system
from remote.gpu import ensure_gpu
from remote.host import RemoteError
from remote.system import APT_IS_FREE, ensure_system
from remote.waiting import wait_until

UBUNTU = 'NAME="Ubuntu"\nID=ubuntu\nVERSION_ID="18.04"\n'
DEBIAN = 'NAME="Debian"\nID=debian\nVERSION_ID="12"\n'


class Bare(FakeMachine):
    """A machine on which only some commands are installed; a script given to bash installs all."""

    def __init__(self, *missing: str, gpus: int = 2, release: str = UBUNTU, clock: float = 1000.0):
        super().__init__()
        self.missing, self.gpus, self.clock = set(missing), gpus, clock
        self.files["/etc/os-release"] = release
        self.asked_apt, self.apt_is_free_at = 0, 1

    def _sh(self, words, stdin):
        if words[3:4] == ("has",):
            return (127 if words[4] in self.missing else 0), ""
        return super()._sh(words, stdin)

    def _bash(self, words, stdin):
        self.changes.append("docker" if "docker-ce" in words[2] else "driver")
        self.missing -= {"docker", "nvidia-smi"} if "docker-ce" not in words[2] else {"docker"}

    def _nvidia_smi(self, words, stdin):
        return "Tesla P100-PCIE-16GB\n" * self.gpus if len(words) > 1 else "a table"

    def _docker_info(self, words):
        return '{"nvidia": {}, "runc": {}}' if "Runtimes" in words[-1] else self.docker_root

    def _env(self, words, stdin):
        self.changes.append(words[-1])
        self.missing.clear()

    def _python3(self, words, stdin):
        self.asked_apt += 1
        return (1 if self.asked_apt < self.apt_is_free_at else 0), ""

    def _date(self, words, stdin):
        return f"{self.clock:.3f}"

    def run(self, argv, **options):
        return super().run(("nvidia_smi", *argv[1:]) if argv[0] == "nvidia-smi" else argv, **options)


def test_a_machine_that_has_everything_is_left_as_it_is():
    machine = Bare()
    assert not ensure_gpu(machine, 2)
    assert not ensure_system(machine, lambda: 1000.0)
    assert machine.changes == []


def test_fewer_gpus_than_the_flavor_has_are_refused():
    with pytest.raises(RemoteError, match="nvidia-smi shows 1, the flavor has 2"):
        ensure_gpu(Bare(gpus=1), 2)


def test_what_a_stock_ubuntu_lacks_is_installed():
    machine = Bare("docker", "nvidia-smi")
    assert ensure_gpu(machine, 2)
    assert machine.changes == ["docker", "driver"]


def test_on_another_system_a_missing_driver_is_a_sentence():
    with pytest.raises(RemoteError, match="not Ubuntu 18.04"):
        ensure_gpu(Bare("nvidia-smi", release=DEBIAN), 2)


def test_only_missing_packages_are_installed():
    machine = Bare("curl", "wipefs")
    assert ensure_system(machine, lambda: 1000.0)
    assert machine.changes == ["update", "util-linux"]


def test_a_machine_that_updates_itself_is_let_finish_before_anything_is_installed():
    machine = Bare("curl")
    machine.apt_is_free_at = 2
    assert ensure_system(machine, lambda: 1000.0)
    assert (machine.asked_apt, machine.changes) == (2, ["update", "curl"])


def test_the_question_whether_apt_is_free_tells_a_held_lock_from_a_free_one(tmp_path):
    lock = tmp_path / "lock"
    ask = (sys.executable, "-c", APT_IS_FREE, str(lock), str(tmp_path / "missing"))
    with lock.open("a") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        assert subprocess.run(ask, capture_output=True, check=False).returncode == 1
    assert subprocess.run(ask, check=False).returncode == 0


def test_a_clock_that_nobody_keeps_and_that_is_wrong_is_refused():
    with pytest.raises(RemoteError, match="-100 s off"):
        ensure_system(Bare(clock=900.0), lambda: 1000.0)


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


def test_a_clock_that_a_time_server_sets_is_waited_for(monkeypatch):
    monkeypatch.setattr(system, "wait_until", lambda *args, **options: wait_until(*args, **options, every_s=0))
    machine = Kept(after=3)
    assert ensure_system(machine, lambda: 1000.0)
    assert machine.after == 0


def test_where_a_time_server_has_set_the_machines_clock_this_computers_is_the_wrong_one():
    assert ensure_system(Kept(after=9**9, says="yes"), lambda: 1000.0)


def test_a_clock_that_no_time_server_sets_stops_before_anything_is_started(monkeypatch):
    monkeypatch.setattr(system, "CLOCK_TIMEOUT_S", 0.0)
    with pytest.raises(RemoteError, match="-900 s off, and no time server has answered.*fab ssh gpu-0 -- date -s TIME"):
        ensure_system(Kept(after=9**9), lambda: 1000.0)
