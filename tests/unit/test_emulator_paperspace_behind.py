"""Machines behind an emulated Paperspace account, with the user's keys and script, and file servers for the drives."""

from pathlib import Path

import pytest

from emulator.paperspace.lifecycle import MachineTargets
from tests.unit.emulated_paperspace import EmulatedPaperspace


@pytest.fixture
def account(tmp_path: Path) -> EmulatedPaperspace:
    return EmulatedPaperspace(tmp_path)


def spec_of(account: EmulatedPaperspace, ref: str):
    [number] = [each.id for each in account.account.store.machines.read_all() if each.ref == ref]
    return MachineTargets(account.account).target(number).spec


@pytest.mark.parametrize(("is_run_once", "boots"), [(False, ["true", "true"]), (True, ["true", ""])])
def test_a_startup_script_runs_at_each_boot_or_only_at_the_first(account, is_run_once, boots):
    script = account.call("POST", "/startup-scripts", name="a", script="true", isRunOnce=is_run_once)["id"]
    machine = account.ready(startupScriptId=script)
    first = spec_of(account, machine).startup_script
    account.stop(machine)
    account.call("PATCH", f"/machines/{machine}/start")
    assert [first, spec_of(account, machine).startup_script] == boots


def test_a_deleted_drive_is_gone_for_its_owner_before_its_server(tmp_path):
    account = EmulatedPaperspace(tmp_path, machines="containers", clock_step_s=0.0)
    network = account.network()
    drive = account.drive(network)["id"]
    account.call("DELETE", f"/shared-drives/{drive}")
    assert account.call("GET", "/shared-drives")["items"] == []
    assert account.answer("GET", f"/shared-drives/{drive}")[0] == 404
    assert account.answer("DELETE", f"/private-networks/{network}")[0] == 409
    targets = MachineTargets(account.account)
    [number] = targets.ids()
    targets.report(number, targets.target(number), None)
    assert account.answer("DELETE", f"/private-networks/{network}")[0] == 200
