"""A rental that an older version began, under this version with the real engine: `up` changes nothing, the money is known, `down` ends it."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from microcluster.core.home import Home
from microcluster.setup.environment import child_environment
from tests.commands.rented_project import CACHE, RentedProject
from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker
from tests.product import copy_project
from tests.recorded import older

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).parents[2]
UP = ("pulumi", "up", "--refresh", "--run-program", "--yes", "--skip-preview", "--json", "-s", older.STACK)
DOWN = ("fab", "down", "--discard", "--stack", older.STACK)
NOTHING = ("same", "read", "refresh")
COMPONENTS = "microcluster:index:"
"""Types that stand for nothing in the account: a new version may have new ones, with aliases for what they hold."""
REFUSED_AT_ONCE = "127.8.0.0/26"
"""The public network: nobody waits for ssh there."""
STEPS = """#!/bin/sh
case "$1" in
step.*) cat >/dev/null; echo "$1" >>"$HOME/steps" ;;
*) exec "{fab}" "$@" ;;
esac
"""
"""The commands of the clone: a step on machines that are not there is only noted."""


class SoftLayer(AccountEmulator):
    """The emulated account of an older rental."""

    defaults: Mapping[str, Any] = {**AccountEmulator.defaults, "public_subnet": REFUSED_AT_ONCE}

    @property
    def id(self) -> str:
        return str(Onlooker(self.config_file).client.call("Account", "getObject", mask="id")["id"])


class Paperspace(AccountEmulator):
    """The same at Paperspace."""

    vendor = "paperspace"
    defaults: Mapping[str, Any] = {"provisioning_s": 300.0, "public_subnet": REFUSED_AT_ONCE}

    @property
    def id(self) -> str:
        headers = {"Authorization": f"Bearer {self.key}"}
        return requests.get(f"{self.root}/v1/auth/session", headers=headers, timeout=20).json()["team"]["id"]


RENTED = {"softlayer": SoftLayer, "paperspace": Paperspace}


@dataclass(frozen=True)
class Taken(RentedProject):
    """A clone of this version over the home of an older one."""

    account: str

    @property
    def resources(self) -> dict[str, str]:
        """The ids in the account, by name, as Pulumi's state has them."""
        return {
            one["urn"].rpartition("::")[2]: one["id"] for one in self._state if one["type"].startswith(self.account)
        }

    @property
    def outputs(self) -> dict[str, Any]:
        """What the program exports."""
        return self._state[0]["outputs"]

    @property
    def _state(self) -> list[dict[str, Any]]:
        whole = json.loads((self.home.root / older.STATE).read_text())
        return whole["checkpoint"]["latest"].get("resources") or []

    @property
    def steps(self) -> list[str]:
        """The steps that Pulumi has run on machines."""
        file = self.home.root / "steps"
        return file.read_text().split() if file.exists() else []


def taken(account: str, folder: Path, account_id: str) -> Taken:
    home = Home(folder / "home", CACHE)
    older.leave_home(account, home.root, ACCOUNT=account_id)
    copy_project(folder / "project", "tests/", "images/", "stacks/")
    older.leave_project(account, folder / "project")
    note_steps(folder / "project" / ".venv")
    base = {name: value for name, value in os.environ.items() if not name.startswith(("SL_", "PULUMI_"))}
    env = child_environment(home, base | {"HOME": str(home.root)})
    project = Taken(folder / "project", home, env, account)
    made = project.make("setup")
    assert made.returncode == 0, made.stdout + made.stderr
    return project


def note_steps(venv: Path) -> None:
    """Let the steps of this clone be noted; all other programs are those of this one."""
    venv.unlink()
    (venv / "bin").mkdir(parents=True)
    for there in (ROOT / ".venv").iterdir():
        if there.name != "bin":
            (venv / there.name).symlink_to(there)
    for program in (ROOT / ".venv" / "bin").iterdir():
        if program.name != "fab":
            (venv / "bin" / program.name).symlink_to(program)
    (venv / "bin" / "fab").write_text(STEPS.format(fab=ROOT / ".venv" / "bin" / "fab"))
    (venv / "bin" / "fab").chmod(0o755)


@pytest.fixture(scope="module")
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    folder = tmp_path_factory.mktemp("older")
    if request.param not in RENTED:
        yield taken(request.param, folder, "")
        return
    older.leave_account(request.param, folder / "home" / "account")
    with RENTED[request.param](folder / "home" / "account") as account:
        yield taken(request.param, folder, account.id)


of_rented = pytest.mark.parametrize("project", RENTED, indirect=True)


def operations(printed: str) -> list[tuple[str, str]]:
    """Return (operation, resource) of what an update did, without what it left as it was."""
    events = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    done = [event["resOutputsEvent"]["metadata"] for event in events if "resOutputsEvent" in event]
    found = [(each["op"], each["urn"].rpartition("$")[2]) for each in done if each["op"] not in NOTHING]
    return [one for one in found if one[0] != "create" or not one[1].startswith(COMPONENTS)]


@of_rented
def test_an_update_changes_nothing(project):
    before = project.resources
    updated = project.run(*UP)
    assert updated.returncode == 0, updated.stdout[-3000:] + updated.stderr
    assert '"resourceChanges"' in updated.stdout and operations(updated.stdout) == []
    assert project.resources == before and project.steps == []


@pytest.mark.parametrize("project", ["queue"], indirect=True)
def test_an_update_runs_only_the_two_steps_that_name_the_account(project):
    before = project.resources
    updated = project.run(*UP)
    assert updated.returncode == 0, updated.stdout[-3000:] + updated.stderr
    steps = [("update", f"command:local:Command::{name}") for name in ("cluster-queue", "job-run")]
    assert operations(updated.stdout) == steps
    assert project.resources == before


@of_rented
def test_the_receipt_has_the_rental_and_what_was_kept_of_it(project):
    [kept] = [json.loads(file.read_text()) for file in (older.HERE / project.account / "home/receipts").iterdir()]
    read = project.run("fab", "receipt", "--stack", older.STACK, "--json")
    assert read.returncode == 1, "it is still billed: " + read.stderr
    known = json.loads(read.stdout)
    assert {one["id"] for one in known["items"]} == {one["id"] for one in kept["charges"]}
    assert (known["rental"], known["state"]) == (project.outputs["rental"], "agrees")
    assert known["earlier"]["items"] == 0, "the same rental is no second one"


@pytest.mark.parametrize("project", ["softlayer"], indirect=True)
def test_the_guard_knows_the_rental_and_the_older_ones_record(project):
    looked = project.run("fab", "guard", "--stack", older.STACK)
    assert "only lease and budget end it" in looked.stdout, looked.stdout + looked.stderr
    told = project.run("fab", "guard", "--status", "--json", "--stack", older.STACK)
    assert "guard@laptop" in told.stdout, told.stdout + told.stderr
    records = [json.loads(file.read_text()) for file in project.home.keys.glob("*/guards/*.json")]
    assert [one["rental"]["id"] for one in records] == 2 * [project.outputs["rental"]]


@of_rented
def test_down_ends_the_rental_and_proves_it(project):
    done = project.run(*DOWN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"open billing items with mark \w{8}: 0", done.stdout), done.stdout
    assert project.resources == {}
