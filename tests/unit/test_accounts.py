"""The registry of accounts, and that nothing outside it asks in which account a stack is rented."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from test_config import written

from emulator.vendors import VENDORS
from microcluster.accounts.registry import ACCOUNTS, account_of
from microcluster.config import stack as config
from microcluster.config.stack import ConfigError
from microcluster.jobs.job_section import Runtime
from microcluster.setup import secret_env

ROOT = Path(__file__).parents[2]
OWN = re.compile(rf"microcluster/accounts/(registry\.py|({'|'.join(ACCOUNTS)})/)|components/({'|'.join(ACCOUNTS)})\.py")
"""Files with the code of one account."""
NAMES = re.compile("|".join(rf"accounts\.{name}|components\.{name}" for name in ACCOUNTS) + "|softlayer|paperspace")


def test_no_code_outside_the_registry_names_an_account() -> None:
    files = [file for folder in ("microcluster", "components") for file in (ROOT / folder).rglob("*.py")]
    shared = [file for file in files if not OWN.match(str(file.relative_to(ROOT)))]
    assert {str(file) for file in shared if NAMES.search(file.read_text())} == set()


@pytest.mark.parametrize("name", ACCOUNTS)
def test_every_account_has_a_provider_a_component_an_emulator_and_withheld_secrets(name: str) -> None:
    account = account_of(name)
    opened = import_module(f"microcluster.accounts.{name}.account")
    assert callable(opened.account_of)
    assert import_module(f"components.{name}").Cluster
    assert name in VENDORS
    assert set(ACCOUNTS[name]) <= set(secret_env.NAMES)
    assert account.runtime in Runtime.__args__
    assert account.machine_type in account.resource_types or not account.resource_types
    assert all(kind.startswith(f"{name}:index:") for kind in account.resource_types)
    wanted = {"account", "nodes"} | ({"adminCidrs"} if account.resource_types else set())
    assert {field.alias for field in account.section.model_fields.values()} >= wanted


def test_an_account_that_does_not_exist_is_refused_with_those_that_do(tmp_path, monkeypatch) -> None:
    wanted = "cluster/account: 'softlayr' should be 'softlayer', 'paperspace' or 'queue'"
    with pytest.raises(ConfigError, match=wanted):
        config.parse("dev", written(cluster__account="softlayr"))
    with pytest.raises(ConfigError, match="other:configFile: unknown key"):
        config.parse("dev", written() | {"other:configFile": "~/key"})
    monkeypatch.setattr(config, "STACKS", tmp_path)
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {'microcluster:cluster': {account: softlayr}}")
    with pytest.raises(ConfigError, match=wanted):
        config.read_account("dev")
