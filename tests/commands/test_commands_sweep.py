"""`fab sweep` against the emulated account: what bears a mark and belongs to no living stack, and never a stranger's."""

import json
import subprocess
from pathlib import Path

from tests.commands.rented_project import KEY, fab


def sweep(home: Path, *words: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    return fab(home, "sweep", *words, answer=answer)


def test_the_sweep_lists_resources_without_a_stack_and_cancels_only_named_ones(home, onlooker) -> None:
    mine = onlooker.order("gpu-0", "v100-0badcafe.microcluster")
    onlooker.order("gpu-0", "example.com")
    onlooker.order("gpu-0", "v100-0badcafe.microcluster.example.com")
    group = {"name": "test-members", "description": "microcluster v100-0badcafe: members"}
    group_id = onlooker.client.call("Network_SecurityGroup", "createObject", group)["id"]
    onlooker.client.call("Network_SecurityGroup", "createObject", {"name": "test-x", "description": "microcluster"})

    listed = json.loads(sweep(home, "--json").stdout)
    assert sorted(each["id"] for each in listed) == [f"group/{group_id}", f"guest/{mine}"]
    assert len(onlooker.billed()) == 3, "looking changes nothing"

    assert sweep(home, "--id", "nope").returncode == 2
    assert sweep(home, "--mark", "0badcafe", answer="no\n").returncode == 1
    assert len(onlooker.billed()) == 3
    named = sweep(home, "--id", f"guest/{mine}", "--id", str(group_id), "--yes")
    assert named.returncode == 0, named.stdout + named.stderr
    assert sorted(each["domain"] for each in onlooker.billed()) == [
        "example.com",
        "v100-0badcafe.microcluster.example.com",
    ]
    assert sweep(home).returncode == 0


def test_the_sweep_names_the_command_to_cancel_a_marked_billing_item(home, onlooker, account_emulator):
    vlan = account_emulator.order_in_portal("vlan", notes="microcluster v100-0badcafe", datacenter="lon06")
    command = f"slcli call-api Billing_Item cancelService --id {vlan['billing_item']}"
    assert command in sweep(home).stdout
    refused = sweep(home, "--mark", "0badcafe", "--yes")
    assert refused.returncode == 1
    assert f"cancel it with '{command}'" in refused.stderr
    assert account_emulator.status()["open_billing_items"] == 1


NASTY = "old [/data] of run 7 \x85\x9b31m\u202e"
"""What XML carries of all that a terminal obeys or rich takes for markup."""


def test_texts_that_others_wrote_end_no_sweep_and_reach_no_terminal(home, onlooker) -> None:
    key = {"label": NASTY, "notes": "microcluster v100-0badcafe [/b]", "key": KEY}
    key_id = onlooker.client.call("Security_Ssh_Key", "createObject", key)["id"]
    group = {"name": NASTY, "description": "microcluster v100-0badcafe: [/members]"}
    onlooker.client.call("Network_SecurityGroup", "createObject", group)

    listed = sweep(home)
    assert (listed.returncode, listed.stderr) == (1, "")
    assert listed.stdout.count("old [/data] of run 7") == 2
    assert not set("\x85\x9b\u202e\x1b") & set(listed.stdout)
    cancelled = sweep(home, "--mark", "0badcafe", "--yes")
    assert cancelled.returncode == 0, cancelled.stdout + cancelled.stderr
    assert f"key/{key_id}" in cancelled.stdout
