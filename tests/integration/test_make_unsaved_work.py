"""What `make up` finds at risk before it touches anything, with the real engine and an account without machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker
from tests.integration.rented_project import RentedProject, install

pytestmark = pytest.mark.timeout(300)
ASK = """
import os
from microcluster.lifecycle import unsaved_work
from microcluster.home import Home
print(unsaved_work.why_machines_may_go(Home.of(), "local"))
"""


def risk(project: RentedProject) -> str:
    asked = project.run(str(project.folder / ".venv" / "bin" / "python"), "-c", ASK)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.strip()


def test_a_guest_that_somebody_renamed_is_at_risk_and_an_account_that_is_silent_leaves_it_open(tmp_path: Path) -> None:
    account = AccountEmulator(tmp_path / "account", reclaim_s=60.0)
    account.start()
    try:
        project = install(tmp_path / "clone", account)
        up = project.run("pulumi", "up", "--yes", "--skip-preview", "-s", "local")
        assert up.returncode == 0, up.stdout
        assert risk(project) == "None", "nothing has changed"
        onlooker = Onlooker(account.config_file)
        guest = next(each for each in onlooker.billed() if each["hostname"] == "gpu-1")
        onlooker.client.call("Virtual_Guest", "editObject", {"hostname": "renamed"}, id=guest["id"])
        assert "gpu-1" in risk(project)
    finally:
        account.stop()
    assert "cannot be told" in risk(project)
