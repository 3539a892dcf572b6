"""The account's own prices, in a preview and in `fab plan --live`: asked where there is a key, and never waited for."""

import json
import shutil
import socket
import time
from pathlib import Path

import pytest
import yaml

from microcluster.accounts.softlayer import catalog
from microcluster.accounts.softlayer.billing import ACCOUNT_PRICE
from microcluster.commands import plan
from microcluster.config import stack as config
from microcluster.config import variants
from tests.integration.provider_cluster import LEDGER
from tests.integration.provider_driver import Driver

LIST_PRICE = float(catalog.price_per_hour(LEDGER["flavor"], tuple(LEDGER["dataDisksGb"]), LEDGER["portSpeedMbps"]))


def previewed(config_file: Path | str) -> dict:
    with Driver(config_file) as driver:
        return driver.create("Ledger", "ledger", LEDGER, preview=True).outputs


def test_a_preview_with_a_key_shows_the_accounts_price_of_all_nodes(account_emulator, onlooker) -> None:
    shown = previewed(account_emulator.config_file)
    assert shown["priceSource"] == ACCOUNT_PRICE
    assert float(shown["pricePerHour"]) == pytest.approx(2 * LIST_PRICE, rel=0.01)
    assert onlooker.billed() == []


def test_a_preview_without_a_key_shows_the_dated_catalog_and_says_so(tmp_path) -> None:
    shown = previewed(tmp_path / "none.conf")
    assert float(shown["pricePerHour"]) == 2 * LIST_PRICE
    assert shown["priceSource"] == f"{catalog.PRICE_SOURCE}, as there is no key"


def test_a_preview_waits_at_most_three_seconds_for_a_silent_account(tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        key_file = tmp_path / "softlayer.conf"
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/xmlrpc/v3.1/"
        key_file.write_text(f"[softlayer]\nusername = local\napi_key = local\nendpoint_url = {address}\n")
        key_file.chmod(0o600)
        with Driver(key_file) as driver:
            began = time.monotonic()
            shown = driver.create("Ledger", "ledger", LEDGER, preview=True).outputs
            assert time.monotonic() - began < 20
            assert "did not answer within 3 s" in driver.said()
    assert shown["priceSource"] == f"{catalog.PRICE_SOURCE}, as the account gave no price"


@pytest.fixture
def stacks(tmp_path, monkeypatch) -> Path:
    """The folder of stack files, and nothing that was fetched."""
    shutil.copytree(config.path_of("v100").parent, tmp_path / "stacks")
    for module in (config, variants):
        monkeypatch.setattr(module, "path_of", lambda name: tmp_path / "stacks" / f"Pulumi.{name}.yaml")
    monkeypatch.setattr(plan, "ARTIFACTS", tmp_path)
    return tmp_path / "stacks"


def with_key(stacks: Path, key_file: Path, **cluster: object) -> None:
    path = stacks / "Pulumi.v100.yaml"
    values = yaml.safe_load(path.read_text())
    values["config"]["softlayer:configFile"] = str(key_file)
    values["config"]["microcluster:cluster"] |= cluster
    path.write_text(yaml.safe_dump(values))


def test_a_live_plan_has_the_account_s_prices(stacks, account_emulator, capsys) -> None:
    with_key(stacks, account_emulator.config_file)
    assert plan.plan.code(stack="v100", live=True, as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["prices"] == f"Prices by {ACCOUNT_PRICE}."
    assert found["without_price"] == []
    assert all(float(row["per_hour"]) > 1.9 * row["nodes"] for row in found["rows"])


def test_what_the_account_refuses_has_no_price_and_the_reason(stacks, account_emulator, capsys) -> None:
    with_key(stacks, account_emulator.config_file, privateVlan=999999)
    assert plan.plan.code(stack="v100", live=True) == 1
    told = capsys.readouterr().err
    assert "no price for any choice" in told and "verifying the order of 1 x" in told


def test_a_live_plan_without_a_key_is_refused_with_the_next_command(stacks, tmp_path, capsys) -> None:
    with_key(stacks, tmp_path / "none.conf")
    assert plan.plan.code(stack="v100", live=True) == 2
    assert "fab plan --stack v100" in capsys.readouterr().err
