"""The vendor's own command line and library on the emulated account: what our pages and messages tell people to type."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import SoftLayer

from tests.integration.conftest import ROOT, AccountEmulator
from tests.integration.until import until

SLCLI = Path(sys.executable).with_name("slcli")
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "D" * 43
DOMAIN = "cli-1f3a9c42.microcluster"
GUEST = {
    "hostname": "gpu-0",
    "domain": DOMAIN,
    "flavor": "AC1_16X120X100",
    "datacenter": "lon04",
    "os_code": "UBUNTU_18_64",
    "nic_speed": 1000,
    "disks": ["100", "2000"],
    "local_disk": False,
    "tags": "train,mc-1f3a9c42",
}
CREATE = f"vs create -H typed -D {DOMAIN} --flavor AC1_8X60X25 -d lon04 -o UBUNTU_18_64 --san --network 100 -k mine"
SHOWN = {
    "vs list": "gpu-0",
    f"vs list -H gpu-* -D {DOMAIN} -d lon04 -c 16 -m 122880 -n 1000 --tag train --transient false": "gpu-0",
    "vs list --hourly --columns hostname,power_state,created_by,tags": '"local"',
    "vs ready gpu-0": "READY",
    "vs detail gpu-0 --price --passwords": '"root"',
    "vs credentials gpu-0": "UBUNTU_18_64",
    "vs billing gpu-0": "2000 GB (SAN)",
    "vs create-options lon04": "AC2_16X120X100",
    "sshkey list": "mine",
    "sshkey print mine": "mine",
    "securitygroup list": "members",
    "securitygroup detail GROUP": "gpu-0",
    "securitygroup rule-list GROUP": "ingress",
    "vlan list": "lon04.fcr01a",
    "vlan detail VLAN": "gpu-0",
    "account billing-items": f"gpu-0.{DOMAIN}",
    "account summary": '"Virtual Guests": 1',
    "hw list": "[]",
    "user list": "worker",
    "call-api Account getVirtualGuests --mask id,hostname": "gpu-0",
}
CHANGING = {"vs create", "vs edit", "vs reboot", "vs cancel", "sshkey add", "sshkey edit", "sshkey remove"} | {
    "user edit-permissions"
}
REFUSED = {
    "vs power-off gpu-0": "Virtual_Guest::powerOffSoft",
    "vs power-on gpu-0": "Virtual_Guest::powerOn",
    "vs storage gpu-0": "Virtual_Guest::getAttachedNetworkStorages",
    "vs list --search": "Search::advancedSearch",
    "image list": "Account::getPrivateBlockDeviceTemplateGroups",
    "subnet list": "Account::getSubnets",
    "block volume-list": "Account::getIscsiNetworkStorage",
    "account invoices": "Account::getInvoices",
    "account orders": "Billing_Order::getAllObjects",
    "account events": "Notification_Occurrence_Event::getAllObjects",
}


class Slcli:
    """The command line in processes of its own, with the file of an account and no settings of the user."""

    def __init__(self, config_file: Path) -> None:
        self._words = [SLCLI, "-y", "-C", config_file, "--format", "json"]
        self._environment = {**os.environ, "HOME": str(config_file.parent), "NO_PROXY": "127.0.0.1"}

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        command = [*self._words, *map(str, words)]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=self._environment)

    def text(self, *words: object) -> str:
        done = self.run(*words)
        assert done.returncode == 0, f"slcli {words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """An account that keeps cancelled guests listed for a minute of real time."""
    restricted = {"restricted_user": "worker", "restricted_permissions": ["SERVER_ADD"]}
    with AccountEmulator(tmp_path_factory.mktemp("slcli"), reclaim_s=36_000.0, **restricted) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def slcli(emulator):
    return Slcli(emulator.config_file)


def client_of(emulator, protocol: str = "xmlrpc", username: str = "local") -> SoftLayer.API.BaseClient:
    endpoint = {"xmlrpc": emulator.endpoint, "rest": emulator.rest_endpoint}[protocol]
    return SoftLayer.create_client_from_env(username, emulator.key, endpoint_url=endpoint, timeout=20)


def ordered(client: SoftLayer.API.BaseClient, **changes: object) -> int:
    """Order a guest and wait until it is ready, by the manager alone."""
    manager = SoftLayer.VSManager(client)
    made = manager.create_instance(**GUEST | changes)
    assert manager.wait_for_ready(made["id"], 30, delay=0.1, pending=True)
    return made["id"]


@pytest.fixture(scope="module")
def answers(emulator, slcli):
    """Output of every command that only reads; they run side by side, as each takes a second."""
    client = client_of(emulator)
    SoftLayer.SshKeyManager(client).add_key(PUBLIC_KEY, "mine")
    network = SoftLayer.NetworkManager(client)
    group = network.create_securitygroup("members")["id"]
    network.add_securitygroup_rule(group, direction="ingress", protocol="tcp", port_min=22, port_max=22)
    ordered(client, public_security_groups=[group])
    (vlan,) = (each["id"] for each in network.list_vlans() if each["networkSpace"] == "PUBLIC")
    named = {"GROUP": group, "VLAN": vlan}
    commands = [*SHOWN, *REFUSED]
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda line: slcli.run(*(named.get(word, word) for word in line.split())), commands)
        return dict(zip(commands, done, strict=True))


@pytest.mark.parametrize(("command", "text"), SHOWN.items())
def test_an_everyday_command_shows_the_account(answers, command, text):
    done = answers[command]
    assert done.returncode == 0, done.stdout + done.stderr
    assert text in done.stdout


@pytest.mark.parametrize(("command", "method"), REFUSED.items())
def test_what_is_not_emulated_is_refused_by_its_name(answers, command, method):
    done = answers[command]
    assert done.returncode != 0
    assert f"does not emulate SoftLayer_{method}" in done.stdout + done.stderr


def test_a_guest_is_tested_ordered_renamed_restarted_and_cancelled_by_name(slcli, emulator, answers):
    before = emulator.status()["open_billing_items"]
    assert "hourly cost" in slcli.text(*CREATE.split(), "--test")
    assert emulator.status()["open_billing_items"] == before
    slcli.text(*CREATE.split(), "--tag", "one,two")
    client = client_of(emulator)
    (guest_id,) = SoftLayer.VSManager(client).resolve_ids("typed")
    until(lambda: client.call("Virtual_Guest", "getObject", id=guest_id)["provisionDate"])
    slcli.text("vs", "edit", guest_id, "--domain", "cli-00000000.microcluster")
    slcli.text("vs", "reboot", "typed")
    slcli.text("vs", "cancel", "typed")
    assert emulator.status()["open_billing_items"] == before
    (listed,) = json.loads(slcli.text("vs", "list", "-H", "typed", "--columns", "domain,tags,action"))
    assert listed == {"domain": "cli-00000000.microcluster", "tags": ["one", "two"], "action": listed["action"]}
    assert listed["action"]  # It is being reclaimed.


def test_a_billing_item_is_cancelled_as_our_messages_say(slcli, emulator):
    before = emulator.status()["open_billing_items"]
    made = emulator.order_in_portal("volume")
    slcli.text("call-api", "Billing_Item", "cancelService", "--id", made["billing_item"])
    assert emulator.status()["open_billing_items"] == before


def test_a_key_is_added_edited_and_removed(slcli, emulator):
    slcli.text("sshkey", "add", "-k", PUBLIC_KEY[:-1] + "E", "typed")
    slcli.text("sshkey", "edit", "typed", "--label", "edited")
    slcli.text("sshkey", "remove", "edited")
    keys = SoftLayer.SshKeyManager(client_of(emulator)).list_keys()
    assert {"typed", "edited"}.isdisjoint(each["label"] for each in keys)


def test_a_permission_that_our_messages_name_is_granted(slcli, emulator):
    worker = client_of(emulator, username="worker")
    key = {"key": PUBLIC_KEY[:-1] + "F", "label": "theirs"}
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        worker.call("Security_Ssh_Key", "createObject", key)
    slcli.text("user", "edit-permissions", "worker", "--enable", "-p", "CUSTOMER_SSH_KEY_MANAGEMENT")
    made = worker.call("Security_Ssh_Key", "createObject", key)
    worker.call("Security_Ssh_Key", "deleteObject", id=made["id"])
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Access Denied"):
        worker.call("User_Customer", "addBulkPortalPermission", [{"keyName": "SERVER_CANCEL"}], id=6118)


@pytest.mark.parametrize("protocol", ["xmlrpc", "rest"])
def test_the_library_orders_waits_reads_and_cancels(emulator, protocol):
    manager, name = SoftLayer.VSManager(client_of(emulator, protocol)), f"by-{protocol}"
    guest_id = ordered(manager.client, hostname=name)
    guest = manager.get_instance(guest_id)
    assert (guest["maxCpu"], guest["maxMemory"], guest["datacenter"]["longName"]) == (16, 122_880, "London 4")
    assert [each["tag"]["name"] for each in guest["tagReferences"]] == ["train", "mc-1f3a9c42"]
    assert guest["billingItem"]["orderItem"]["order"]["userRecord"]["username"] == "local"
    assert guest["lastTransaction"]["transactionGroup"]["name"] == "Service Setup"
    assert "activeTransaction" not in guest
    assert [each["maxSpeed"] for each in guest["networkComponents"]] == [1000, 1000]
    for known in (name, guest["primaryIpAddress"], guest["primaryBackendIpAddress"]):
        assert manager.resolve_ids(known) == [guest_id]
    assert manager.cancel_instance(guest_id)
    (listed,) = manager.list_instances(hostname=f"{name}*", mask="mask[id,billingItem[id]]")
    assert listed == {"id": guest_id}  # still there for half an hour, and billed no more
    assert not manager.wait_for_ready(guest_id, 0, pending=True)


def test_a_guest_that_is_being_built_is_not_ready(emulator_with):
    manager = SoftLayer.VSManager(client_of(emulator_with(clock_step_s=1.0)))
    guest_id = manager.create_instance(**GUEST)["id"]
    assert not manager.wait_for_ready(guest_id, 0)


@pytest.mark.parametrize("protocol", ["xmlrpc", "rest"])
def test_the_library_keeps_keys(emulator, protocol):
    keys = SoftLayer.SshKeyManager(client_of(emulator, protocol))
    made = keys.add_key(PUBLIC_KEY[:-1] + "G", f"of {protocol}", "a note")
    assert [each["id"] for each in keys.list_keys(label=f"OF {protocol}")] == [made["id"]]
    assert keys.resolve_ids(f"of {protocol}") == [made["id"]]
    assert keys.get_key(made["id"])["notes"] == "a note"
    keys.delete_key(made["id"])
    assert keys.list_keys(label=f"of {protocol}") == []


def test_another_size_of_the_first_disk_than_the_flavors_is_refused(emulator):
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="Block device 0"):
        SoftLayer.VSManager(client_of(emulator)).create_instance(**GUEST | {"disks": ["25"]})


def of(commands: Iterable[str]) -> set[str]:
    """The commands without what follows them."""
    return {re.match(r"call-api|\S+ \S+", command)[0] for command in commands}


def test_the_page_says_of_each_command_what_was_seen_here():
    page = " ".join((ROOT / "docs" / "emulator.md").read_text().split())
    listed = page.partition("### The official client")[2]
    lists = {answer: listed.partition(f"- {answer}: ")[2].partition(".")[0] for answer in ("Works", "Refused")}
    answers = {name: answer.lower() for answer, names in lists.items() for name in re.findall(r"`([^`]+)`", names)}
    works = of(SHOWN) | CHANGING
    assert answers == dict.fromkeys(of(REFUSED) - works, "refused") | dict.fromkeys(works, "works")


def test_every_command_that_we_name_works_here():
    named = set()
    for path in (ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("microcluster/accounts/softlayer/*.py")):
        text = re.sub(r"\"\s+f?\"", "", path.read_text())  # texts that go on in the next line
        text = text.partition("### The official client")[0]
        named |= of(re.findall(r"slcli (?:-C \S+ )?([a-z-]+ [a-zA-Z_-]+)", text))
    assert named == {"vs list", "hw list", "sshkey list", "user list", "user edit-permissions", "vs edit", "call-api"}
    assert named <= of(SHOWN) | CHANGING
