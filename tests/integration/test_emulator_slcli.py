"""The vendor's own command line as a process of its own; the rest of its commands run in test_clients_*."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
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


def until(probe: Callable[[], bool]) -> None:
    """Each look takes a second already, because each is a process."""
    assert any(probe() for _ in range(30)), "it did not happen in time"


def test_the_catalog_is_shown_with_flavors_systems_and_disks(slcli):
    text = slcli("vs", "create-options", "lon04", raw=True)
    assert {"AC1_16X120X100", "AC2_16X120X100", "UBUNTU_18_64", "GUEST_DISK_2000_GB_SAN"} <= set(text.split('"'))


def test_a_guest_is_quoted_ordered_listed_shown_billed_and_cancelled(slcli, account_emulator):
    slcli("vs", "create", "--test", *ORDER, raw=True)
    assert slcli("vs", "list") == []
    slcli("vs", "create", *ORDER, "--tag", "one,two", "--wait", 30, raw=True)
    listed = slcli("vs", "list")
    assert [(each["hostname"], each["datacenter"]) for each in listed] == [("gpu-0", "lon04")]
    shown = slcli("vs", "detail", "gpu-0", "--passwords", "--price")
    assert shown["hostname"] == "gpu-0"
    assert shown["preset"] == "AC1_16X120X100"
    assert shown["tags"] == ["one", "two"]
    assert "2000 GB" in {drive["Capacity"] for drive in shown["drives"]}
    assert slcli("vs", "ready", "gpu-0") == "READY"
    items = slcli("account", "billing-items")
    assert [each["Description"] for each in items] == ["gpu-0.cli-1f3a9c42.microcluster"]
    slcli("vs", "upgrade", "gpu-0", "--flavor", "AC1_8X60X100", raw=True)
    until(lambda: slcli("vs", "detail", "gpu-0")["preset"] == "AC1_8X60X100")
    until(lambda: slcli("vs", "detail", "gpu-0")["active_transaction"] is None)
    slcli("vs", "cancel", "gpu-0", raw=True)
    assert slcli("account", "billing-items") == []
    assert account_emulator.status()["open_billing_items"] == 0
