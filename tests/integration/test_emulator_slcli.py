"""The vendor's own command line as a process of its own: what our pages and messages tell people to type."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SLCLI = Path(sys.executable).with_name("slcli")
ORDER = (
    *("-H", "gpu-0", "-D", "cli-1f3a9c42.microcluster", "--flavor", "AC1_16X120X100", "-d", "lon04"),
    *("-o", "UBUNTU_18_64", "--san", "--disk", "100", "--disk", "2000", "--network", "1000", "--billing", "hourly"),
)


@pytest.fixture(scope="module")
def slcli(account_emulator):
    def run(*words: object, raw: bool = False) -> Any:
        command = [SLCLI, "-y", "-C", account_emulator.config_file, "--format", "json", *map(str, words)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"slcli {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout if raw else json.loads(done.stdout)

    return run


def test_a_guest_is_ordered_with_a_wait_listed_renamed_and_cancelled(slcli, account_emulator):
    slcli("vs", "create", *ORDER, "--tag", "one,two", "--wait", 30, raw=True)
    [listed] = slcli("vs", "list")
    assert (listed["hostname"], listed["datacenter"]) == ("gpu-0", "lon04")
    assert slcli("vs", "ready", "gpu-0") == "READY"
    slcli("vs", "edit", listed["id"], "--domain", "cli-00000000.microcluster", raw=True)
    assert [each["domain"] for each in slcli("vs", "list")] == ["cli-00000000.microcluster"]
    slcli("vs", "cancel", "gpu-0", raw=True)
    assert account_emulator.status()["open_billing_items"] == 0
