"""The account over https: who may trust it, and what is left when its stream breaks after a call was carried out."""

import json
import os
import threading
import urllib.error
import urllib.request

import pytest
import SoftLayer
from click.testing import CliRunner
from SoftLayer.CLI import core

from microcluster.accounts.softlayer import account as accounts
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.credentials import load
from microcluster.accounts.softlayer.errors import ApiError
from tests.integration.conftest import AccountEmulator
from tests.integration.emulator_commands import Commands
from tests.integration.test_emulator_account import template

WAYS = ["plain_bytes", "alert", "end", "reset"]


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    with AccountEmulator(tmp_path_factory.mktemp("secure"), tls=True) as emulator:
        yield emulator


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The official client exports what it reads as ``verify``; no later test may inherit that."""
    monkeypatch.setenv("SSL_CERT_FILE", os.environ.get("SSL_CERT_FILE", ""))


def test_the_clients_file_leads_to_it_and_names_the_authority(emulator):
    key = load(str(emulator.config_file))
    assert key.endpoint == emulator.endpoint and key.endpoint.startswith("https://")
    account = accounts.account_of(str(emulator.config_file))
    assert account.whoami().username == "local"
    client = SoftLayer.create_client_from_env(config_file=str(emulator.config_file), verify=key.authority)
    assert client.call("Account", "getObject")["id"] == int(account.whoami().account_id)


def test_slcli_needs_the_authority_in_its_environment(emulator, monkeypatch):
    words = ["-C", str(emulator.config_file), "--format", "json", "vs", "list"]
    assert "CERTIFICATE_VERIFY_FAILED" in str(CliRunner().invoke(core.cli, words).exception)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(emulator.state / "authority.pem"))
    assert json.loads(CliRunner().invoke(core.cli, words).output) == []


def test_a_proxy_in_the_home_leads_no_official_client_away_from_it(account_emulator, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".softlayer").write_text("[softlayer]\nproxy = http://127.0.0.1:9\n")
    client = SoftLayer.create_client_from_env(config_file=str(account_emulator.config_file))
    assert client.call("Account", "getObject")["id"]


def test_another_accounts_authority_is_not_trusted(emulator, emulator_with):
    other = emulator_with(tls=True)
    words = emulator.config_file.read_text().replace(str(emulator.state), str(other.state))
    (other.state / "wrong.conf").write_text(words)
    with pytest.raises(ApiError, match=r"(?i)certificate"):
        Api(load(str(other.state / "wrong.conf")), threading.Event()).once("Account", "getObject")


@pytest.mark.parametrize("protocol", ["xmlrpc", "rest"])
@pytest.mark.parametrize("way", WAYS)
def test_an_order_whose_stream_breaks_was_taken_once(emulator, tmp_path, protocol, way):
    hostname = f"{way.replace('_', '-')}-{protocol}"
    config = tmp_path / "client.conf"
    config.write_text(emulator.config_file.read_text().replace("/xmlrpc/", f"/{protocol}/"))
    emulator.script(
        "Virtual_Guest::createObject", "broken_tls", way=way, about=f"{hostname}.test-1f3a9c42.microcluster", times=9
    )
    with pytest.raises(ApiError) as lost:
        Api(load(str(config)), threading.Event()).once("Virtual_Guest", "createObject", template(hostname))
    assert not lost.value.is_refusal
    guests = Api(load(str(config)), threading.Event()).read_all("Account", "getVirtualGuests", mask="mask[id,hostname]")
    assert [guest["hostname"] for guest in guests].count(hostname) == 1


def test_an_account_without_tls_refuses_the_fault(account_emulator, tmp_path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        account_emulator.script("Account::getObject", "broken_tls")
    assert "TLS" in json.load(refused.value)["error"]
    (tmp_path / "settings.toml").write_text("faults = {broken_tls = 0.5}\n")
    served = Commands(tmp_path).run("serve")
    assert served.returncode == 2 and "needs TLS" in served.stderr
