"""`fab recover`, `make down` and `fab receipt` after a crash, with the real engine and an account without machines."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcluster.lifecycle import locks, orphans, pulumi_state
from tests.integration.conftest import AccountEmulator
from tests.integration.rented_project import RentedProject, install

pytestmark = pytest.mark.timeout(240)
UP = ("pulumi", "up", "--yes", "--skip-preview", "-s", "local")


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    emulator = AccountEmulator(tmp_path_factory.mktemp("account"), reclaim_s=60.0)
    yield emulator
    emulator.stop()


@pytest.fixture(scope="module")
def clone(account: AccountEmulator, tmp_path_factory: pytest.TempPathFactory) -> RentedProject:
    return install(tmp_path_factory.mktemp("clone"), account)


@pytest.fixture
def project(clone: RentedProject, account: AccountEmulator) -> RentedProject:
    """The clone, with its account running: a `make down` stops the emulator when nothing is rented any more."""
    account.restart()
    return clone


@pytest.fixture
def slow_account(project: RentedProject, account: AccountEmulator) -> Iterator[AccountEmulator]:
    """The same account with guests that take long to build, so that an `up` can be met in the middle."""
    account.stop()
    account.clock_rate = 10  # 300 seconds of its clock are 30 of ours.
    account.start()
    yield account
    account.clock_rate = 600


def start_up(project: RentedProject) -> subprocess.Popen[str]:
    """Start an `up`, and return once both guests are ordered."""
    up = project.start(*UP)
    ends = time.monotonic() + 240
    while len(rented(project)) < 2:
        assert up.poll() is None and time.monotonic() < ends
    return up


def killed(project: RentedProject, account: AccountEmulator) -> None:
    """Kill an `up` that has ordered both guests and recorded neither."""
    up = start_up(project)
    up.kill()
    up.wait()
    account.stop()
    account.clock_rate = 600
    account.start()


def rented(project: RentedProject) -> list[str]:
    """List the hosts that the account bills, as the receipt tells."""
    facts = json.loads(project.run("fab", "receipt", "--json").stdout)
    return sorted(row["host"] for row in facts["items"] if row["is_open"])


def broken_as(kind: str, path: Path) -> None:
    whole = path.read_bytes()
    copies = [path.with_suffix(".json.bak"), *path.parents[2].glob("backups/microcluster/local/*.json")]
    if kind == "gone with its copies":
        for each in (path, *copies):
            each.unlink()
    elif kind == "stale":
        empty = json.loads(whole)
        empty["checkpoint"]["latest"] = {
            key: empty["checkpoint"]["latest"][key] for key in ("manifest", "secrets_providers")
        }
        path.write_text(json.dumps(empty))
    else:
        path.write_bytes({"truncated": whole[: len(whole) // 2], "emptied": b""}[kind])


@pytest.mark.parametrize("kind", ["truncated", "emptied", "stale", "gone with its copies"])
def test_a_make_down_ends_with_nothing_billed_whatever_became_of_the_state(project: RentedProject, kind: str) -> None:
    up = project.run(*UP)
    assert up.returncode == 0, up.stdout + up.stderr
    assert rented(project) == ["gpu-0", "gpu-1"]
    broken_as(kind, project.state_file)
    down = project.make("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert re.search(r"open billing items with mark \w{8}: 0", down.stdout), down.stdout


def test_recover_after_a_killed_up_leaves_no_process_no_lock_and_no_open_question(
    project: RentedProject, slow_account: AccountEmulator
) -> None:
    killed(project, slow_account)
    assert orphans.find("local", project.home) and locks.stale_lock("local", project.home)
    refused = project.make("up")
    assert refused.returncode == 1 and "fab recover --stack local" in refused.stderr

    recovered = project.run("fab", "recover", "--yes")
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    assert not orphans.find("local", project.home) and not locks.pulumi_locks("local", project.home)
    assert pulumi_state.read("local", project.home).pending_creates == 0
    assert rented(project) == ["gpu-0", "gpu-1"]
    again = project.run("fab", "recover", "--yes")
    assert again.returncode == 0 and "ended:" not in again.stdout, "recovering twice is recovering once"

    cancelled = project.run("fab", "recover", "--yes", "--cancel")
    assert cancelled.returncode == 0, cancelled.stdout + cancelled.stderr
    assert rented(project) == []
    assert project.make("down").returncode == 0


def test_without_a_yes_nothing_is_changed(project: RentedProject, slow_account: AccountEmulator) -> None:
    killed(project, slow_account)
    asked = project.run("fab", "recover")
    assert asked.returncode == 1 and "Nothing was changed" in asked.stderr
    assert "still running: pulumi-language-python" in asked.stdout
    assert locks.stale_lock("local", project.home)
    down = project.make("down")
    assert down.returncode == 0, down.stdout + down.stderr
    assert not orphans.find("local", project.home)


def test_a_pulumi_that_lives_is_named_and_left_alone(project: RentedProject, slow_account: AccountEmulator) -> None:
    up = start_up(project)
    for command in (
        ("fab", "recover", "--yes"),
        ("python", "-m", "microcluster", "up"),
        ("python", "-m", "microcluster", "down"),
    ):
        began = time.monotonic()
        refused = project.run(*command)
        assert refused.returncode == 1 and f"process {up.pid} of" in refused.stderr, refused.stderr
        assert time.monotonic() - began < 90, "five seconds on a machine that does nothing else"
    second = project.run(*UP)
    assert second.returncode != 0 and str(up.pid) in second.stdout + second.stderr
    assert up.poll() is None
    up.send_signal(signal.SIGINT)
    up.wait(240)
    assert project.make("down").returncode == 0
