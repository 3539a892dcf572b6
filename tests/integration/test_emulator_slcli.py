"""The vendor's own command line as a process of its own: what our pages and messages tell people to type."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.until import until

SLCLI = Path(sys.executable).with_name("slcli")


@pytest.fixture(scope="module")
def slcli(account_emulator):
    def run(*words: object, raw: bool = False) -> Any:
        command = [SLCLI, "-y", "-C", account_emulator.config_file, "--format", "json", *map(str, words)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"slcli {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout if raw else json.loads(done.stdout)

    return run


def test_a_guest_is_listed_and_renamed_and_its_billing_item_is_cancelled(slcli, account_emulator, onlooker):
    guest_id = onlooker.order("gpu-0")
    until(lambda: onlooker.client.call("Virtual_Guest", "getObject", id=guest_id)["provisionDate"])
    [listed] = slcli("vs", "list")
    assert (str(listed["id"]), listed["hostname"], listed["datacenter"]) == (guest_id, "gpu-0", "lon06")
    slcli("vs", "edit", guest_id, "--domain", "cli-00000000.microcluster", raw=True)
    assert [each["domain"] for each in slcli("vs", "list")] == ["cli-00000000.microcluster"]
    (guest,) = onlooker.guests()
    slcli("call-api", "Billing_Item", "cancelService", "--id", guest["billingItem"]["id"], raw=True)
    assert account_emulator.status()["open_billing_items"] == 0
