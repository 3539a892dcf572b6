"""Whose a guest is, read from the guest itself: an id in a state, or a mark alone, proves nothing."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.integration.provider_cluster import KEY, LEDGER, MARK, STACK, group, guest
from tests.integration.provider_driver import Failed, Resource

OTHER_STACK = f"p100-{MARK}.microcluster"


def shown(onlooker, guest_id: str) -> dict:
    """What could have been changed or ended of a guest."""
    mask = "mask[id,hostname,domain,notes,billingItem[id],tagReferences[tag[name]]]"
    return onlooker.client.call("Virtual_Guest", "getObject", id=int(guest_id), mask=mask)


def actions(driver, resource):
    return {
        "read": lambda: driver.read(resource),
        "update": lambda: driver.update(resource, guest("gpu-0", tags=["changed"])),
        "delete": lambda: driver.delete(resource),
    }


@pytest.mark.parametrize("action", ["read", "update", "delete"])
@pytest.mark.parametrize("domain", ["example.com", OTHER_STACK, f"{STACK}-00000000.microcluster"])
def test_a_strangers_guest_whose_id_stands_in_our_state_is_neither_changed_nor_cancelled(
    driver, onlooker, domain, action
):
    stranger = onlooker.order("gpu-0", domain)
    before = shown(onlooker, stranger)
    act = actions(driver, Resource("VirtualGuest", "gpu-0", stranger, guest("gpu-0"), {}))[action]
    with pytest.raises(Failed, match=rf"guest {stranger} \(gpu-0.*slcli vs edit {stranger} --domain {STACK}-{MARK}"):
        act()
    assert shown(onlooker, stranger) == before


def test_a_ledger_leaves_what_bears_its_mark_for_another_stack_and_says_so(driver, onlooker):
    ledger = driver.create("Ledger", "ledger", LEDGER)
    other = onlooker.order("gpu-0", OTHER_STACK)
    template = {"key": KEY["publicKey"], "label": "theirs", "notes": f"microcluster p100-{MARK}"}
    key = onlooker.client.call("Security_Ssh_Key", "createObject", template)
    driver.delete(ledger)
    assert [str(each["id"]) for each in onlooker.billed()] == [other]
    assert [each["id"] for each in onlooker.client.call("Account", "getSshKeys")] == [key["id"]]
    assert f"guest/{other} (gpu-0.{OTHER_STACK}) bears mark {MARK} too and is of stack p100" in driver.said()
    assert f"open billing items with mark {MARK}: 0" in driver.said()


def test_another_stacks_copy_of_our_key_is_refused_and_named_and_its_group_is_not_taken_over(driver, onlooker):
    notes = f"microcluster p100-{MARK}"
    onlooker.client.call(
        "Security_Ssh_Key", "createObject", {"key": KEY["publicKey"], "label": "theirs", "notes": notes}
    )
    with pytest.raises(Failed, match="of stack p100, whose folder of keys was copied"):
        driver.create("SshKey", "key", KEY)
    named = {"name": group("members")["name"], "description": notes}
    theirs = onlooker.client.call("Network_SecurityGroup", "createObject", named)
    made = driver.create("SecurityGroup", "group", group("members"))
    assert made.id != str(theirs["id"])


@pytest.mark.parametrize("name", ["web", group("members")["name"]])
def test_a_strangers_group_whose_id_stands_in_our_state_is_not_changed(driver, onlooker, name):
    theirs = onlooker.client.call("Network_SecurityGroup", "createObject", {"name": name, "description": "open to all"})
    with pytest.raises(Failed, match=f"working on security group {theirs['id']} .*not this stack's.* Nothing was done"):
        driver.update(Resource("SecurityGroup", "group", str(theirs["id"]), group("members"), {}), group("members"))
    mask = "mask[name,description,rules[id]]"
    after = onlooker.client.call("Network_SecurityGroup", "getObject", id=theirs["id"], mask=mask)
    assert after == {"name": name, "description": "open to all", "rules": []}


def test_a_strangers_key_whose_id_stands_in_our_state_is_not_renamed(driver, onlooker):
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    public = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH).decode()
    theirs = onlooker.client.call("Security_Ssh_Key", "createObject", {"label": "laptop", "key": public})
    with pytest.raises(Failed, match=f"working on ssh key {theirs['id']} .*not this stack's.* Nothing was done to it"):
        driver.update(Resource("SshKey", "key", str(theirs["id"]), KEY, {}), KEY)
    after = onlooker.client.call("Security_Ssh_Key", "getObject", id=theirs["id"], mask="mask[label]")
    assert after == {"label": "laptop"}
