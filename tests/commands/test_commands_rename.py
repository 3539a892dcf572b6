"""A stack that is renamed, with the real engine and an emulated account without machines: its rental goes on as it is."""

import json
from typing import Any

import pytest

from microcluster.core.home import owner_in_domain
from tests.commands.rented_project import LOCAL, UP, RentedProject
from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker

pytestmark = pytest.mark.timeout(600)
RENAMED = "stacks/Pulumi.big.yaml"


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory):
    with AccountEmulator(tmp_path_factory.mktemp("account"), clock_rate=1, provisioning_s=2, reclaim_s=1) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def rented(clone: RentedProject, account: AccountEmulator) -> dict[str, Any]:
    """What the stack rented under its first name, which it has no more."""
    stack = clone.folder / LOCAL
    stack.write_text(stack.read_text().replace("config:\n", "config:\n  microcluster:guard: {lease: 1000}\n", 1))
    assert clone.run(*UP).returncode == 0
    assert clone.run("fab", "guard").returncode == 0
    before = billed(account)
    assert clone.run("pulumi", "stack", "rename", "big", "-s", "local").returncode == 0
    assert (clone.folder / RENAMED).exists() and not stack.exists()
    return before


def billed(account: AccountEmulator) -> dict[int, str]:
    return {each["id"]: each["domain"] for each in Onlooker(account.config_file).billed()}


def pulumi(clone: RentedProject, *words: str, stack: str) -> str:
    done = clone.run("pulumi", *words, "--yes", "--skip-preview", "-s", stack)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_old_names_guard_goes_on_with_the_renamed_stack(clone, rented):
    said = clone.run("fab", "guard", "--stack", "local")
    assert "Stack local is called big now; it goes on with its keys" in said.stderr
    assert "guard of stack big: within its limits" in said.stdout, said.stdout + said.stderr
    state = clone.run("fab", "guard", "--stack", "big", "--status", "--json")
    assert json.loads(state.stdout)[0]["begun"] is None, "the records of before lie where they lay"
    assert clone.run("fab", "guard", "--stack", "big").returncode == 0


def test_receipt_sweep_and_recovery_know_whose_the_machines_are(clone, rented, account):
    receipt = clone.run("fab", "receipt", "--stack", "big", "--json")
    facts = json.loads(receipt.stdout)
    assert (receipt.returncode, facts["open"], facts["state"]) == (1, 2, "agrees"), receipt.stderr
    swept = clone.run("fab", "sweep", "--stack", "big")
    assert (swept.returncode, "nothing is left over" in swept.stdout) == (0, True), swept.stdout
    recovered = clone.run("fab", "recover", "--stack", "big", "--yes")
    assert "unknown to Pulumi's state: 0 of 5" in recovered.stdout, recovered.stdout + recovered.stderr
    costs = json.loads(clone.run("fab", "costs", "--json").stdout)
    assert [each["stack"] for each in costs["rentals"]] == ["big"]
    assert billed(account) == rented


def test_the_plain_up_changes_and_replaces_nothing(clone, rented, account):
    assert "unchanged" in (said := pulumi(clone, "up", "--refresh", stack="big"))
    assert not {"created", "updated", "replaced", "deleted"} & set(said.split()), said
    assert billed(account) == rented


def test_a_new_stack_with_the_old_name_gets_keys_of_its_own(clone, rented, account):
    (clone.folder / LOCAL).write_text((clone.folder / RENAMED).read_text())
    recovered = clone.run("fab", "recover", "--stack", "local", "--yes")
    assert "began an empty state" in recovered.stdout, "the renamed stack's old state is not restored"
    assert clone.run("fab", "setup").returncode == 0
    pulumi(clone, "up", stack="local")
    mine = {machine: domain for machine, domain in billed(account).items() if machine not in rented}
    assert {owner_in_domain(domain).stack for domain in mine.values()} == {"local-2"}
    assert len(mine) == 2 and rented.items() <= billed(account).items()
    both = clone.run("fab", "guard", "--stack", "local")
    assert "guard of stack big: within" in both.stdout and "guard of stack local: within" in both.stdout, both.stdout
    assert clone.run("fab", "sweep").returncode == 0


def test_a_plain_destroy_right_after_another_rename_cancels_that_stack_alone(clone, rented, account):
    assert clone.run("pulumi", "stack", "rename", "huge", "-s", "big").returncode == 0
    others = {machine for machine in billed(account) if machine not in rented}
    pulumi(clone, "destroy", stack="huge")
    assert billed(account).keys() == others
    assert clone.run("fab", "receipt", "--stack", "huge").returncode == 0
    assert clone.run("fab", "receipt", "--stack", "local").returncode == 1
    pulumi(clone, "destroy", stack="local")
    assert not billed(account)
