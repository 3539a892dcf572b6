"""`fab receipt` against the emulated account: what is billed under the stack's mark, with no state of Pulumi at all."""

import hashlib
import json
from pathlib import Path

from tests.commands.rented_project import KEY, fab
from tests.integration.until import until

MARK = hashlib.sha256(KEY.encode()).hexdigest()[:8]
MINE = f"local-{MARK}.microcluster"


def test_the_receipt_shows_what_is_billed_and_fails_until_nothing_is(home, onlooker):
    onlooker.order("gpu-0", MINE)
    onlooker.order("strangers")
    copied = {"key": KEY, "label": "x", "notes": f"microcluster p100-{MARK}"}
    key = onlooker.client.call("Security_Ssh_Key", "createObject", copied)
    open_one = fab(home, "receipt", "--stack", "local")
    assert open_one.returncode == 1
    assert f"key/{key['id']} (x) bears mark {MARK} too and is of stack p100" in open_one.stdout
    assert f"open billing items with mark {MARK}: 1" in open_one.stdout
    assert "strangers" not in open_one.stdout
    assert "make down STACK=local" in open_one.stderr

    onlooker.clean()
    closed = fab(home, "receipt", "--stack", "local", "--json")
    facts = json.loads(closed.stdout)
    assert (closed.returncode, facts["open"], facts["mark"]) == (0, 0, MARK)
    assert float(facts["total"]) > 0

    costs = fab(home, "costs", "--json")
    (rental,) = json.loads(costs.stdout)["rentals"]
    assert (costs.returncode, rental["cost"], rental["emulated"]) == (0, facts["total"], True)
    assert "<svg" in (home / "costs.html").read_text()


def test_an_account_that_does_not_answer_is_a_sentence(home, tmp_path):
    (home / "emulator").unlink()
    done = fab(home, "receipt")
    assert done.returncode == 3
    assert "python -m emulator start" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_marked_billing_item_fails_the_receipt_with_the_command_to_cancel(home, account_emulator, onlooker):
    volume = account_emulator.order_in_portal("volume", notes=f"microcluster local-{MARK} [/data] of run 7")
    open_one = fab(home, "receipt", "--stack", "local")
    assert open_one.returncode == 1
    assert f"to be cancelled by hand: item/{volume['billing_item']}" in open_one.stdout
    assert f"slcli call-api Billing_Item cancelService --id {volume['billing_item']}" in open_one.stdout
    onlooker.clean()
    assert fab(home, "receipt", "--stack", "local").returncode == 0


def journalled(home: Path, onlooker, order_id: str) -> None:
    """Write down, long ago, an order that the account accepted without naming what it makes."""
    account = onlooker.client.call("Account", "getObject")["id"]
    intent = {"event": "intent", "attempt": "a", "at": "2026-01-01T00:00:00+00:00", "account": str(account)}
    more = {"mark": MARK, "name": "gpu-0", "kind": "guest", "order": "x", "hostname": "gpu-0"}
    receipt = {"event": "receipt", "attempt": "a", "order_id": order_id, "boot": "an old one", "seconds": 1}
    path = home / "journal" / f"local-{MARK}.jsonl"
    path.parent.mkdir()
    path.write_text(f"{json.dumps(intent | more)}\n{json.dumps(receipt)}\n")


def test_a_standing_order_of_any_age_fails_the_receipt_and_is_named(home, onlooker):
    onlooker.order("strangers")
    order = max(each["id"] for each in onlooker.client.call("Account", "getOrders", mask="mask[id]"))
    journalled(home, onlooker, str(order))
    until(lambda: onlooker.client.call("Billing_Order", "getObject", id=order)["status"] == "COMPLETED")
    stands = fab(home, "receipt", "--stack", "local")
    assert stands.returncode == 1
    assert f"to come: gpu-0: its order {order} is COMPLETED, and the account shows nothing of it yet" in stands.stdout
