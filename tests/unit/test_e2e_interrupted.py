"""Ctrl-C of the end-to-end tests: fixtures end, and what is left is removed."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from microcluster.core.polling import wait_until
from microcluster.setup.environment import PROJECT
from tests.e2e import interrupted

CONFTEST = """
import signal
from tests.e2e import interrupted
from xdist.workermanage import NodeManager
NodeManager.EXIT_TIMEOUT = 1
interrupted.remove_machines = lambda made_in: open("removed", "w").close()
def pytest_configure(config):
    signal.signal(signal.SIGINT, interrupted.interrupt_once)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(interrupted.Interrupted())
"""
TEST = """
import pathlib, pytest, time
@pytest.fixture(scope="session")
def machine():
    pathlib.Path("rented").touch()
    yield
    time.sleep(3)
    pathlib.Path("rented").unlink()
def test_train(machine):
    pathlib.Path("trains").touch()
    time.sleep(60)
"""


def test_after_ctrl_c_fixtures_end_before_their_process_and_leftovers_go(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_machine.py").write_text(TEST)
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/base"]
    plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")}
    with subprocess.Popen(argv, cwd=tmp_path, env=plain | {"PYTHONPATH": str(PROJECT)}) as tests:
        wait_until("the test", (tmp_path / "trains").exists, timeout_s=60, every_s=0.1)
        tests.send_signal(signal.SIGINT)
        wait_until("the end", lambda: tests.poll() is not None, timeout_s=60, every_s=0.1)
    assert not (tmp_path / "rented").exists()
    assert (tmp_path / "removed").exists()


def test_commands_of_the_tests_accounts_are_killed_and_no_others(tmp_path: Path) -> None:
    def command(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words or ["sleep", "60"], env=os.environ | environment)

    emulator = ("sh", "-c", "sleep 60; true", "emulator", "--state", f"{tmp_path}/ours/site")
    ours = [command(MICROCLUSTER_HOME=f"{tmp_path}/ours/home"), command(*emulator)]
    others = [command(MICROCLUSTER_HOME=f"{tmp_path}/ours2/home"), command()]
    try:
        wait_until("their words", lambda: b"emulator" in Path(f"/proc/{ours[1].pid}/cmdline").read_bytes(), timeout_s=9)
        interrupted.end_commands((f"{tmp_path}/ours/",))
        assert [one.wait(9) for one in ours] == [-signal.SIGKILL] * 2
        assert [one.poll() for one in others] == [None, None]
    finally:
        for one in (*ours, *others):
            one.kill()
            one.wait()


def test_only_accounts_whose_folders_the_tests_made_are_removed(tmp_path: Path, monkeypatch) -> None:
    def network(account: str, folder: str) -> SimpleNamespace:
        labels = {interrupted.ACCOUNT_LABEL: account, interrupted.STATE_LABEL: folder}
        return SimpleNamespace(attrs={"Labels": labels})

    there = [network("a", "/tests/1/home"), network("a", "/tests/1/home"), network("b", "/tests/12/home")]
    client = SimpleNamespace(networks=SimpleNamespace(list=lambda filters: there))
    monkeypatch.setattr(interrupted.docker, "from_env", lambda: client)
    removed: list[tuple[str, Path]] = []
    machines = lambda account, state, *more: SimpleNamespace(reset=lambda: removed.append((account, state)))  # noqa: E731
    monkeypatch.setattr(interrupted, "ContainerMachines", machines)
    interrupted.remove_machines(("/tests/1/",))
    assert removed == [("a", Path("/tests/1/home"))]
