"""`fab guard` and `fab extend` with the real engine and an emulated account without machines."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.commands.rented_project import LOCAL, UP, RentedProject
from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker

pytestmark = pytest.mark.timeout(400)
CRONTAB = """#!/bin/sh
[ "$1" = -l ] || exec cat >"$HOME/crontab"
cat "$HOME/crontab" 2>/dev/null || { echo "no crontab for me" >&2; exit 1; }
"""


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    """An account whose clock is ours, as a guard reads both."""
    with AccountEmulator(tmp_path_factory.mktemp("account"), clock_rate=1, provisioning_s=2, reclaim_s=1) as emulator:
        yield emulator


def limit(clone: RentedProject, section: str) -> None:
    stack = clone.folder / LOCAL
    kept = [line for line in stack.read_text().splitlines() if "microcluster:guard" not in line]
    at = kept.index("config:") + 1
    stack.write_text("\n".join([*kept[:at], f"  microcluster:guard: {section}", *kept[at:]]) + "\n")


def test_guard_and_receipt_read_an_extension_in_the_account(clone, account):
    limit(clone, "{lease: 1000}")
    assert clone.run(*UP).returncode == 0
    extended = clone.run("fab", "extend", "--hours", "6")
    assert "+6 h more" in extended.stdout, extended.stdout + extended.stderr
    again = clone.run("fab", "extend", "--hours", "1.5")
    assert "+7.5 h in all" in again.stdout, again.stdout + again.stderr
    facts = json.loads(clone.run("fab", "guard", "--json").stdout)
    assert facts["extension"]["hours"] == "7.5"
    assert "extended by +7.5 h" in clone.run("fab", "receipt").stdout

    limit(clone, "{lease: 0.001}")
    assert "guard of stack local: within its limits" in clone.run("fab", "guard").stdout  # Of 7.501 hours.
    state = clone.run("fab", "guard", "--status")
    assert "looked" in state.stdout and state.returncode == 0


def test_the_line_of_cron_is_proved_and_is_seen_to_look(clone: RentedProject, tmp_path: Path):
    for name, text in (("crontab", CRONTAB), ("systemctl", "#!/bin/sh\nexit 1\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    with_cron = replace(clone, env=clone.env | {"PATH": f"{tmp_path}{os.pathsep}{clone.env['PATH']}"})
    limit(clone, "{lease: 1000}")
    installed = with_cron.run("fab", "guard", "--install")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert "within its limits" in installed.stdout
    state = with_cron.run("fab", "guard", "--status")
    assert state.returncode == 0 and "marked `# microcluster-guard-local-" in state.stdout, state.stdout + state.stderr
    assert "last seen to look" in state.stdout
    assert "the timer is removed" in with_cron.run("fab", "guard", "--remove").stdout
    assert "every minute: nothing on this computer" in with_cron.run("fab", "guard", "--status").stdout


def test_another_flavor_replaces_each_machine_after_its_bill_has_ended(clone):
    stack = clone.folder / LOCAL
    stack.write_text(stack.read_text().replace("AC1_16X120X100", "AC1_8X60X100"))
    done = clone.run(*UP)
    assert done.returncode == 0, done.stdout + done.stderr
    items = json.loads(clone.run("fab", "receipt", "--all", "--json").stdout)["items"]
    for name in ("gpu-0", "gpu-1"):
        first, second = sorted((item for item in items if item["host"] == name), key=lambda item: item["opened"])
        assert first["closed"] <= second["opened"]


def test_limits_of_the_rental_hold_after_the_stack_file_lost_them(clone):
    stack = clone.folder / LOCAL
    before = stack.read_text()
    stack.write_text("\n".join(line for line in before.splitlines() if "microcluster:guard" not in line) + "\n")
    said = clone.run("fab", "guard")
    assert (said.returncode, "The limits with which it was rented count" in said.stderr) == (0, True)
    assert "There is nothing to extend" in clone.run("fab", "extend", "--dollars", "6").stderr
    stack.write_text(before)


def test_a_missing_or_wrong_stack_file_lifts_no_limit(clone):
    """Finding A8: it was exit code 2 with nothing recorded, and a typo in `cluster.account` kept everything from being cancelled."""
    stack = clone.folder / LOCAL
    before = stack.read_text()
    for broken in (None, "config: [", before.replace("account: softlayer", "account: softlair")):
        stack.unlink(missing_ok=True)
        if broken:
            stack.write_text(broken)
        said = clone.run("fab", "guard")
        assert (said.returncode, "within its limits" in said.stdout) == (0, True), said.stdout + said.stderr
    stack.write_text(before)


def test_an_unreadable_account_is_exit_code_3_with_the_next_command(clone, account):
    account.stop()
    said = clone.run("fab", "guard")
    account.start()
    assert said.returncode == 3, said.stdout + said.stderr
    assert "the account cannot be read" in said.stdout and "check the account's key" in said.stdout


def test_a_budgets_end_cancels_everything_but_a_strangers_machine(clone, account):
    bystander = Onlooker(account.config_file).order("gpu-0", domain="local-0badcafe.microcluster")
    limit(clone, "{budget: 15.5, whenDone: keep}")
    assert "within its limits" in clone.run("fab", "guard").stdout, "a changed stack file counts from the next up on"
    renewed = clone.run(*UP)
    assert renewed.returncode == 0, renewed.stdout + renewed.stderr
    ended = clone.run("fab", "guard")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "another started hour costs" in ended.stderr
    assert "open billing items with mark" in ended.stdout and "cancelled" in ended.stdout
    assert [str(each["id"]) for each in Onlooker(account.config_file).billed()] == [bystander]
    assert clone.run("fab", "receipt").returncode == 0
    assert "nothing is rented" in clone.run("fab", "guard").stdout
