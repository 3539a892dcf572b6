"""The vendor's own command line client `pspace`, unmodified, against the emulated account; it runs where `pspace` is on the path.

The client needs modules from the internet's Deno registry and has no package, so CI does not have it: there,
tests/unit/test_emulator_paperspace_client.py sends what the client sends.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.paperspace_account import Paperspace

PSPACE = shutil.which("pspace")
pytestmark = pytest.mark.skipif(PSPACE is None, reason="the vendor's client `pspace` is not installed")
LIMIT_S = 300  # a busy machine takes long to start the client


class Client:
    """The client, logged in to an account."""

    def __init__(self, home: Path, account: Paperspace) -> None:
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "NO_COLOR": "1",
            "PAPERSPACE_API_URL": f"{account.root}/v1",
            "PAPERSPACE_API_KEY": "local",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PSPACE, *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def json(self, *words: str) -> dict:
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Paperspace]:
    with Paperspace(tmp_path / "account") as emulated:  # a machine that is still being built may be deleted
        yield emulated


@pytest.fixture
def client(tmp_path: Path, account: Paperspace) -> Client:
    client = Client(tmp_path, account)
    assert client.run("login", "local").returncode == 0
    return client


def test_the_client_creates_lists_gets_and_deletes_networks_drives_and_machines(client, account):
    network = client.json("private-network", "create", "--name", "train", "--region", "ny2")["id"]
    where = ("--network-id", network, "--region", "ny2")
    drive = client.json("shared-drive", "create", "--name", "data", "--size", "250", *where)["id"]
    wanted = ("--machine-type", "P4000x2", "--template-id", "twnlo3zj", "--disk-size", "50", "--start-on-create")
    machine = client.json("machine", "create", "--name", "node-0", *wanted, *where)["data"]["id"]
    for kind, made in (("private-network", network), ("shared-drive", drive), ("machine", machine)):
        assert [each["id"] for each in client.json(kind, "list")["items"]] == [made]
        assert client.json(kind, "get", made)["id"] == made
        assert made in client.run(kind, "list").stdout
    assert client.json("machine-event", "list")["items"]
    client.json("machine", "delete", machine)
    client.json("shared-drive", "delete", drive)
    assert account.status()["drives"] == []


def test_the_client_reads_every_refusal(client):
    for words in (("machine", "get", "ps1"), ("machine", "list", "--limit", "500")):
        refused = client.run(*words)
        assert refused.returncode == 1
        assert "Network Error" in refused.stderr
        assert "Runtime Error" not in refused.stderr
