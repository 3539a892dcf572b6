"""What `make up` finds at risk, `fab recover` and `make down` after a crash, with the real engine and an account without machines."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcluster.lifecycle import locks, orphans, pulumi_state
from tests.commands.rented_project import UP, UP_LIMIT_S, RentedProject
from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker
from tests.integration.until import until

pytestmark = pytest.mark.timeout(240)
RISK = """
from microcluster.run import unsaved_work
from microcluster.core.home import Home
print(unsaved_work.why_something_ends(Home.of(), "local", None))
"""


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    emulator = AccountEmulator(tmp_path_factory.mktemp("account"), reclaim_s=60.0)
    yield emulator
    emulator.stop()


@pytest.fixture
def project(clone: RentedProject, account: AccountEmulator) -> RentedProject:
    """The clone, with its account running: a `make down` stops the emulator when nothing is rented any more."""
    account.restart()
    return clone


@pytest.fixture
def rented(project: RentedProject, account: AccountEmulator) -> RentedProject:
    """The clone with both guests up, which a test may have left to the next."""
    if not billed(account):
        up = project.run(*UP)
        assert up.returncode == 0, up.stdout + up.stderr
    assert billed(account) == ["gpu-0", "gpu-1"]
    return project


@pytest.fixture
def killed(project: RentedProject, account: AccountEmulator) -> RentedProject:
    """The clone after an `up` that was killed when it had ordered both guests and recorded neither."""
    if billed(account):
        assert project.make("down").returncode == 0
    account.stop()
    account.clock_rate = 10  # 300 seconds of its clock are 30 of ours: an `up` can be met in the middle.
    account.start()
    up = project.start(*UP)
    until(lambda: up.poll() is not None or len(billed(account)) == 2, UP_LIMIT_S)
    up.kill()
    up.wait()
    account.stop()
    account.clock_rate = 600
    account.start()
    return project


def billed(account: AccountEmulator) -> list[str]:
    """List the hosts that the account bills."""
    return sorted(guest["hostname"] for guest in Onlooker(account.config_file).billed())


def risk(project: RentedProject) -> str:
    asked = project.run(str(project.folder / ".venv" / "bin" / "python"), "-c", RISK)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.strip()


def test_a_make_up_after_a_killed_one_adopts_its_orders_unasked(killed, account):
    refused = killed.make("up")  # This clone has no images, so it ends after the repair.
    assert "proved: no process, no lock" in refused.stdout, refused.stdout + refused.stderr
    assert not orphans.find("local", killed.home) and not locks.pulumi_locks("local", killed.home)
    up = killed.run(*UP)
    assert (up.returncode, billed(account)) == (0, ["gpu-0", "gpu-1"]), up.stdout + up.stderr


def test_a_renamed_guest_is_at_risk_or_unknown_without_the_accounts_answer(rented, account):
    assert risk(rented) == "None", "nothing has changed"
    onlooker = Onlooker(account.config_file)
    guest = next(each for each in onlooker.billed() if each["hostname"] == "gpu-1")
    onlooker.client.call("Virtual_Guest", "editObject", {"hostname": "renamed"}, id=guest["id"])
    assert "gpu-1" in risk(rented)
    onlooker.client.call("Virtual_Guest", "editObject", {"hostname": "gpu-1"}, id=guest["id"])
    account.stop()
    assert "cannot be told" in risk(rented)
    account.start()


def broken_as(kind: str, path: Path) -> None:
    whole = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        state = json.loads(whole)
        latest = state["checkpoint"]["latest"]
        state["checkpoint"]["latest"] = {key: latest[key] for key in ("manifest", "secrets_providers")}
        path.write_text(json.dumps(state))


@pytest.mark.parametrize("kind", ["truncated", "stale"])
def test_a_make_down_ends_with_nothing_billed_whatever_became_of_the_state(rented, kind):
    broken_as(kind, rented.state_file)
    down = rented.make("down")
    counts = re.findall(r"open billing items with mark \w{8}: (\d+)", down.stdout)
    assert (down.returncode, counts[-1:]) == (0, ["0"]), down.stdout + down.stderr


def test_recover_after_a_killed_up_leaves_no_process_lock_or_question(killed, account):
    assert orphans.find("local", killed.home) and locks.stale_lock("local", killed.home)
    asked = killed.run("fab", "recover")
    assert asked.returncode == 1 and "Nothing was changed" in asked.stderr
    assert "still running: pulumi-language-python" in asked.stdout
    assert orphans.find("local", killed.home) and locks.stale_lock("local", killed.home)

    recovered = killed.run("fab", "recover", "--yes")
    assert recovered.returncode == 0, recovered.stdout + recovered.stderr
    assert not orphans.find("local", killed.home) and not locks.pulumi_locks("local", killed.home)
    assert pulumi_state.read("local", killed.home).pending_creates == 0
    assert billed(account) == ["gpu-0", "gpu-1"]
    again = killed.run("fab", "recover", "--yes")
    assert again.returncode == 0 and "ended:" not in again.stdout, "recovering twice is recovering once"

    cancelled = killed.run("fab", "recover", "--yes", "--cancel")
    assert cancelled.returncode == 0, cancelled.stdout + cancelled.stderr
    assert billed(account) == []
