"""Volumes and VLANs with our mark, which no stack declares: reported, never cancelled, and a person's command ends them."""

import pytest
from click.testing import CliRunner
from SoftLayer.CLI import core

from tests.integration.provider_cluster import LEDGER, MARK, STACK, Onlooker
from tests.integration.provider_driver import Driver, Failed

MARKED = {
    "a volume by its notes": ("volume", {"text": f"microcluster {STACK}-{MARK} corpus"}, "slcli block volume-cancel"),
    "a volume by its billing item": ("volume", {"notes": f"microcluster {STACK}-{MARK}"}, "slcli block volume-cancel"),
    "a VLAN by its name": ("vlan", {"text": f"mc-{MARK}-train"}, "slcli vlan cancel"),
    "a VLAN by its billing item": ("vlan", {"notes": f"microcluster {STACK}-{MARK}"}, "slcli vlan cancel"),
}
FOREIGN = (
    ("volume", {"text": f"microcluster {STACK}-{MARK}0"}),
    ("volume", {"text": f"old microcluster {STACK}-{MARK}"}),
    ("vlan", {"text": f"mc-{MARK}0-train"}),
    ("vlan", {"text": "mc-0badcafe-train", "notes": "microcluster"}),
)


@pytest.fixture(scope="module")
def driver(account_emulator):
    with Driver(account_emulator.config_file) as running:
        yield running


@pytest.mark.parametrize("name", MARKED)
def test_a_marked_thing_fails_the_ledgers_proof_until_the_named_command_has_cancelled_it(
    driver, onlooker, account_emulator, name
):
    kind, wanted, command = MARKED[name]
    made = account_emulator.order_in_portal(kind, datacenter="lon06", **wanted)
    ledger = driver.create("Ledger", "ledger", LEDGER)
    with pytest.raises(Failed, match=f"{kind}/{made['id']}.*{command}.*run the command again"):
        driver.delete(ledger)
    assert onlooker.open_count() == 1

    words = [*command.split()[1:], *(["--immediate"] if kind == "volume" else []), str(made["id"])]
    done = CliRunner().invoke(core.cli, ["-y", "-C", str(account_emulator.config_file), *words])
    assert done.exit_code == 0, done.output
    driver.delete(ledger)
    assert onlooker.open_count() == 0


def test_what_bears_another_mark_or_none_is_nobodys_business(driver, onlooker: Onlooker, account_emulator):
    for kind, wanted in FOREIGN:
        account_emulator.order_in_portal(kind, datacenter="lon06", **wanted)
    driver.delete(driver.create("Ledger", "ledger", LEDGER))
    assert onlooker.open_count() == 0
    assert account_emulator.status()["open_billing_items"] == len(FOREIGN)
