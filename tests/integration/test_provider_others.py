"""What a person ordered under our mark and no stack declares: an open billing item is named and never cancelled."""

import pytest
from click.testing import CliRunner
from SoftLayer.CLI import core

from tests.integration.provider_cluster import LEDGER, MARK, STACK, Onlooker
from tests.integration.provider_driver import Failed

FOREIGN = (
    ("volume", {"notes": f"microcluster {STACK}-{MARK}0"}),
    ("volume", {"notes": f"old microcluster {STACK}-{MARK}"}),
    ("vlan", {"notes": "microcluster"}),
)


@pytest.mark.parametrize("kind", ["volume", "vlan"])
def test_a_marked_billing_item_fails_the_ledgers_proof_until_the_named_command_has_cancelled_it(
    driver, onlooker, account_emulator, kind
):
    account_emulator.order_in_portal(kind, datacenter="lon06", notes=f"microcluster {STACK}-{MARK} corpus")
    ledger = driver.create("Ledger", "ledger", LEDGER)
    with pytest.raises(Failed, match=r"cancelling item/\d+ .*run the command again") as refused:
        driver.delete(ledger)
    assert onlooker.open_count() == 1
    (words,) = {each for each in str(refused.value).split("'") if each.startswith("slcli ")}
    done = CliRunner().invoke(core.cli, ["-y", "-C", str(account_emulator.config_file), *words.split()[1:]])
    assert done.exit_code == 0, done.output
    driver.delete(ledger)
    assert onlooker.open_count() == 0


def test_what_bears_another_mark_or_none_is_nobodys_business(driver, onlooker: Onlooker, account_emulator):
    for kind, wanted in FOREIGN:
        account_emulator.order_in_portal(kind, datacenter="lon06", **wanted)
    driver.delete(driver.create("Ledger", "ledger", LEDGER))
    assert onlooker.open_count() == 0
    assert account_emulator.status()["open_billing_items"] == len(FOREIGN)
