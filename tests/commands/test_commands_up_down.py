"""`fab up --down` with the real engine against an account without machines: a job that does not come about leaves nothing billed."""

import re

import pytest

from tests.commands.rented_project import LOCAL, install

pytestmark = pytest.mark.timeout(240)
STACK = "paid"
GUARD = "config:\n  microcluster:guard: {keepFailed: 0}\n"


def test_one_command_rents_and_cancels_again_what_its_job_did_not_use(tmp_path, account_emulator):
    project = install(tmp_path, account_emulator)
    # By this path the account is none that the commands may start or stop.
    account = (project.folder / LOCAL).read_text().replace("$MICROCLUSTER_HOME/emulator", str(account_emulator.state))
    stack = account.replace("203.0.113.1/32", "11.0.0.7/32").replace("config:\n", GUARD, 1)
    (project.folder / LOCAL).with_name(f"Pulumi.{STACK}.yaml").write_text(stack)
    done = project.run("fab", "up", "--stack", STACK, "--down")
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    rented = re.findall(r"gpu-\d-guest +created", done.stdout)
    cancelled = re.findall(r"gpu-\d-guest +deleted", done.stdout)
    assert (len(rented), len(cancelled)) == (2, 2), said
    assert re.search(r"open billing items with mark \w{8}: 0", done.stdout), said
    receipt = project.run("fab", "receipt", "--stack", STACK)
    assert receipt.returncode == 0, receipt.stdout + receipt.stderr
