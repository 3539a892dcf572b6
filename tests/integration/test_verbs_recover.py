"""`fab recover`, `make down` and `fab receipt` after a crash, with the real engine and an account without machines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import AccountEmulator
from tests.integration.rented_project import RentedProject, install

pytestmark = pytest.mark.timeout(240)
UP = ("pulumi", "up", "--yes", "--skip-preview", "-s", "local")
# The account's clock runs 60 times as fast as ours.
SLOW = {"provisioning_s": 1200.0, "reclaim_s": 120.0, "clock_rate": 60}


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
