"""`fab receipt` against the emulated account: what is billed under the stack's mark, with no state of Pulumi at all."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import SoftLayer

ROOT = Path(__file__).parents[2]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP1m8HkPs2YX3BPDd4rXyDKzwKEhIGpyqUXoMzFzbNQa"
MARK = hashlib.sha256(KEY.encode()).hexdigest()[:8]


@pytest.fixture
def home(tmp_path, account_emulator):
    """A home whose local stack is the emulated account of these tests."""
    home = tmp_path / "home"
    (home / "keys" / "local").mkdir(parents=True)
    (home / "keys" / "local" / "id_ed25519.pub").write_text(KEY + " stack local\n")
    (home / "emulator").symlink_to(account_emulator.state)
    return home


def fab(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [Path(sys.executable).parent / "fab", *words]
    return subprocess.run(
        argv, cwd=ROOT, env={**os.environ, "MICROCLUSTER_HOME": str(home)}, capture_output=True, text=True, check=False
    )


def rent(emulator, mark: str, hostname: str) -> int:
    client = client_of(emulator)
    wanted = {
        "hostname": hostname,
        "domain": f"local-{mark}.microcluster",
        "datacenter": {"name": "lon06"},
        "supplementalCreateObjectOptions": {"bootMode": None, "flavorKeyName": "AC1_16X120X100"},
        "operatingSystemReferenceCode": "UBUNTU_18_64",
        "hourlyBillingFlag": True,
        "localDiskFlag": False,
    }
    return client.call("Virtual_Guest", "createObject", wanted)["id"]


def client_of(emulator) -> SoftLayer.API.BaseClient:
    return SoftLayer.create_client_from_env(
        username="local", api_key="local", endpoint_url=emulator.endpoint, timeout=20
    )


def cancel(emulator, guest_id: int) -> None:
    client = client_of(emulator)
    for _ in range(400):
        guest = client.call("Virtual_Guest", "getObject", id=guest_id, mask="provisionDate,activeTransaction[id]")
        if guest.get("provisionDate") and not guest.get("activeTransaction"):
            break
        time.sleep(0.05)
    client.call("Virtual_Guest", "deleteObject", id=guest_id)


def test_the_receipt_shows_what_is_billed_and_fails_until_nothing_is(home, account_emulator):
    guest = rent(account_emulator, MARK, "gpu-0")
    rent(account_emulator, "00000000", "strangers")
    open_one = fab(home, "receipt", "--stack", "local")
    assert open_one.returncode == 1
    assert f"open billing items with mark {MARK}: 1" in open_one.stdout
    assert "strangers" not in open_one.stdout
    assert "make down STACK=local" in open_one.stderr

    cancel(account_emulator, guest)
    closed = fab(home, "receipt", "--stack", "local", "--json")
    facts = json.loads(closed.stdout)
    assert (closed.returncode, facts["open"], facts["mark"]) == (0, 0, MARK)
    assert float(facts["total"]) > 0
    assert f"open billing items with mark {MARK}: 0" in fab(home, "receipt").stdout


def test_a_stack_without_a_key_has_no_mark(tmp_path, account_emulator):
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "emulator").symlink_to(account_emulator.state)
    done = fab(tmp_path / "bare", "receipt")
    assert done.returncode == 2
    assert "make setup" in done.stderr


def test_an_account_that_does_not_answer_is_a_sentence(home, tmp_path):
    (home / "emulator").unlink()
    done = fab(home, "receipt")
    assert done.returncode == 1
    assert "python -m emulator start" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_marked_billing_item_makes_the_receipt_fail_and_is_named_with_the_command_that_cancels_it(
    home, account_emulator
):
    volume = account_emulator.order_in_portal("volume", notes=f"microcluster local-{MARK} [/data] of run 7")
    open_one = fab(home, "receipt", "--stack", "local")
    assert open_one.returncode == 1
    assert f"to be cancelled by hand: item/{volume['billing_item']}" in open_one.stdout
    assert f"slcli call-api Billing_Item cancelService --id {volume['billing_item']}" in open_one.stdout
    client_of(account_emulator).call("Billing_Item", "cancelItem", True, True, "", "", id=volume["billing_item"])
    assert fab(home, "receipt", "--stack", "local").returncode == 0


def journalled(home: Path, account_emulator, order_id: str) -> None:
    """Write down, long ago, an order that the account accepted without naming what it makes."""
    account = client_of(account_emulator).call("Account", "getObject")["id"]
    intent = {"event": "intent", "attempt": "a", "at": "2026-01-01T00:00:00+00:00", "account": str(account)}
    more = {"mark": MARK, "name": "gpu-0", "kind": "guest", "order": "x", "hostname": "gpu-0"}
    receipt = {"event": "receipt", "attempt": "a", "order_id": order_id, "boot": "an old one", "seconds": 1}
    path = home / "journal" / f"local-{MARK}.jsonl"
    path.parent.mkdir()
    path.write_text(f"{json.dumps(intent | more)}\n{json.dumps(receipt)}\n")


def test_an_order_that_stands_makes_the_receipt_fail_and_is_named_however_old_it_is(home, account_emulator):
    guest = rent(account_emulator, "00000000", "strangers")
    order = max(each["id"] for each in client_of(account_emulator).call("Account", "getOrders", mask="mask[id]"))
    journalled(home, account_emulator, str(order))
    stands = fab(home, "receipt", "--stack", "local")
    assert stands.returncode == 1
    assert f"to come: gpu-0: its order {order} is COMPLETED, and the account shows nothing of it yet" in stands.stdout
    cancel(account_emulator, guest)


def test_what_has_the_mark_of_another_stack_is_reported_and_not_counted(home, account_emulator):
    client = client_of(account_emulator)
    key = client.call(
        "Security_Ssh_Key", "createObject", {"key": KEY, "label": "x", "notes": f"microcluster p100-{MARK}"}
    )
    told = fab(home, "receipt", "--stack", "local")
    assert told.returncode == 0
    assert f"key/{key['id']} (x) bears mark {MARK} too and is of stack p100" in told.stdout
    client.call("Security_Ssh_Key", "deleteObject", id=key["id"])
