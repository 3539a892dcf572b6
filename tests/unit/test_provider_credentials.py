"""Sources of the key; no file of keys is ever quoted, whatever stands in it."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from microcluster.accounts.paperspace import credentials as paperspace
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.softlayer.account import account_of
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.credentials import Credentials, CredentialsError, load
from microcluster.accounts.softlayer.errors import ApiError
from tests.unit.breaking_server import answer, breaking_server

KEY = "0123456789abcdef0123456789abcdef"
MALFORMED = {
    "no section": f"api_key = {KEY}\n",
    "a line without a sign": f"[softlayer]\nusername = u\n{KEY}\n= {KEY}\n",
    "a broken section": f"[softlayer\napi_key = {KEY}\n",
    "the key twice": f"[softlayer]\nusername = u\napi_key = {KEY}\napi_key = {KEY}\n",
    "the key as section": f"[{KEY}]\n",
    "the section twice": f"[softlayer]\napi_key = {KEY}\n[softlayer]\napi_key = {KEY}\n",
    "the key over two lines": f"[softlayer]\nusername = u\napi_key = {KEY[:16]}\n  {KEY[16:]}\n",
    "a key of strange letters": f"[softlayer]\nusername = u\napi_key = {KEY}\u20ac\n",
    "the key as address": f"[softlayer]\nusername = u\napi_key = k\nendpoint_url = {KEY}\n",
    "an address with a broken port": f"[softlayer]\nusername = u\napi_key = k\nendpoint_url = http://h:{KEY}/\n",
    "the key as authority": f"[softlayer]\nusername = u\napi_key = k\nverify = {KEY}\n",
    "the key alone": KEY,
    "no user": f"[softlayer]\napi_key = {KEY}\n",
    "both in one line": f"[softlayer]\nusername = u api_key = {KEY}\napi_key = {KEY}\n",
    "both in one line without blanks": f"[softlayer]\nusername = u,api_key={KEY}\napi_key = {KEY}\n",
    "the one for the other": f"[softlayer]\nusername = {KEY}\napi_key = u\n",
    "the one of IBM Cloud for the other": f"[softlayer]\nusername = {KEY.replace('0', 'x')}\napi_key = apikey\n",
    "the key in the address": f"[softlayer]\nusername = u\napi_key = k\nendpoint_url = http://u:{KEY}@127.0.0.1:9/xmlrpc/v3.1/\n",
    "the key behind the address": f"[softlayer]\nusername = u\napi_key = k\nendpoint_url = http://127.0.0.1:9/rest/v3.1/?key={KEY}\n",
}
BYTES = {name: text.encode() for name, text in MALFORMED.items()} | {
    "no text": b"[softlayer]\nusername = u\napi_key = \xff\xfe" + KEY.encode(),
    "another coding": MALFORMED["no section"].encode("utf-16"),
}
WHOLE = f"[softlayer]\nusername = u\napi_key = {KEY}\n"


@pytest.fixture
def home(tmp_path, monkeypatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("SL_USERNAME", "SL_API_KEY", "https_proxy", "HTTPS_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    before = os.umask(0o077)
    yield tmp_path
    os.umask(before)


@pytest.mark.parametrize("is_named", [True, False], ids=["softlayer:configFile", "~/.softlayer"])
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_with_a_key_that_others_may_read_is_refused(home, mode, is_named):
    path = home / ".softlayer"
    path.write_text(WHOLE)
    path.chmod(mode)
    with pytest.raises(CredentialsError, match=f"others on this computer may read it. Run 'chmod 600 {path}'"):
        load(str(path) if is_named else None)
    path.chmod(0o600)
    assert load(str(path)).api_key == KEY


def test_a_file_without_a_key_may_be_read_by_others(home):
    (home / ".softlayer").write_text("[softlayer]\nendpoint_url = https://h/rest/v3.1/\n")
    (home / ".softlayer").chmod(0o644)
    assert load(None, {"SL_USERNAME": "u", "SL_API_KEY": KEY}).endpoint == "https://h/rest/v3.1/"
    with pytest.raises(CredentialsError, match="Is a directory"):
        load(str(home))


@pytest.mark.parametrize("is_named", [True, False], ids=["softlayer:configFile", "~/.softlayer"])
@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES)
def test_a_malformed_file_is_named_and_never_quoted(home, content, is_named):
    path = home / ".softlayer"
    path.write_bytes(content)
    with pytest.raises(CredentialsError) as refused:
        load(str(path) if is_named else None)
    assert str(path) in str(refused.value)
    assert not any(KEY[place : place + 8] in str(refused.value) for place in range(0, 24, 8))
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES)
def test_with_a_file_named_the_file_in_the_home_is_not_read(home, content):
    (home / ".softlayer").write_bytes(content)
    with breaking_server(answer(200, b"7")) as server:
        named = home / "named.conf"
        named.write_text(f"{WHOLE}endpoint_url = {server.endpoint('/rest/v3.1/')}\n")
        assert Api(load(str(named)), threading.Event()).once("Account", "getObject") == 7


def test_a_key_in_the_addresss_path_is_hidden_when_nobody_answers(home):
    path = home / "named.conf"
    path.write_text(f"{WHOLE}endpoint_url = http://127.0.0.1:9/{KEY}/v3.1/\n")
    with pytest.raises(AccountError, match="opening the account") as refused:
        account_of(str(path)).whoami()
    assert KEY not in str(refused.value)


def test_the_exported_key_goes_before_the_files_and_its_address_holds(home):
    (home / ".softlayer").write_text(
        "[softlayer]\nusername = v\napi_key = other\nendpoint_url = https://h/rest/v3.1/\n"
    )
    exported = {"SL_USERNAME": "u", "SL_API_KEY": KEY}
    found = load(None, exported)
    assert found == Credentials("u", KEY, "https://h/rest/v3.1/", 60)
    assert KEY not in repr(found)


def test_a_named_file_must_be_whole_and_hides_exported_keys(home, monkeypatch):
    monkeypatch.setenv("MICROCLUSTER_HOME", str(home))
    exported = {"SL_USERNAME": "someone", "SL_API_KEY": "of a real account"}
    account = "endpoint_url = http://127.0.0.1:1/xmlrpc/v3.1/\ntimeout = 7\n"
    (home / "named.conf").write_text(f"[softlayer]\nusername = local\napi_key = local%\n{account}")
    found = load("$MICROCLUSTER_HOME/named.conf", exported)
    assert found == Credentials("local", "local%", "http://127.0.0.1:1/xmlrpc/v3.1/", 7)
    (home / "named.conf").write_text("[softlayer]\nusername = local\n")
    with pytest.raises(CredentialsError, match="api_key not found"):
        load(str(home / "named.conf"), exported)


@pytest.mark.parametrize("word", ["False", "false", "/nowhere/authority.pem"])
def test_a_file_cannot_switch_the_proof_of_the_endpoint_off(home, word):
    (home / "named.conf").write_text(f"{WHOLE}verify = {word}\n")
    with pytest.raises(CredentialsError, match="reading verify from"):
        load(str(home / "named.conf"))


def test_a_local_account_is_never_called_over_a_proxy(home, monkeypatch):
    with breaking_server(lambda connection: None) as proxy, breaking_server(lambda connection: None) as account:
        address = proxy.endpoint("")
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, address)
        (home / ".softlayer").write_text(
            f"{WHOLE}proxy = {address}\nendpoint_url = {account.endpoint('/xmlrpc/v3.1/')}\n"
        )
        (home / "named.conf").write_text((home / ".softlayer").read_text())
        for file in (None, str(home / "named.conf")):
            with pytest.raises(ApiError):
                Api(load(file), threading.Event()).once("Account", "getObject")
    assert (len(account.requests), proxy.requests) == (2, [])


@pytest.mark.parametrize(
    "host", ["api.test", "192.0.2.7", "127.evil.test", "localhost.test", "[2001:db8::1]", "0.0.0.0"]
)
def test_an_endpoint_over_plain_http_outside_this_computer_is_refused(home, host):
    address = f"http://{host}/rest/v3.1/"
    (home / ".softlayer").write_text(f"{WHOLE}endpoint_url = {address}\n")
    (home / "paperspace").write_text(f"[paperspace]\napi_key = {KEY}\nendpoint_url = {address}\n")
    for read in (lambda: load(None), lambda: paperspace.load(str(home / "paperspace"))):
        with pytest.raises(CredentialsError, match="reading endpoint_url from .*nothing was sent. Write https instead"):
            read()
    assert not Credentials("u", KEY, address, 1).is_local


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8170", "127.8.9.10", "[::1]:8170"])
def test_an_account_on_this_computer_needs_no_https(home, host):
    (home / ".softlayer").write_text(f"{WHOLE}endpoint_url = http://{host}/rest/v3.1/\n")
    assert load(None).is_local


@pytest.mark.parametrize("is_exported", [True, False])
def test_a_real_account_is_called_over_the_proxy_that_is_asked_for(home, monkeypatch, is_exported):
    with breaking_server(lambda connection: None) as proxy:
        monkeypatch.setenv("https_proxy", proxy.endpoint("") if is_exported else "")
        line = "" if is_exported else f"proxy = {proxy.endpoint('')}\n"
        (home / ".softlayer").write_text(f"{WHOLE}{line}endpoint_url = https://192.0.2.7/xmlrpc/v3.1/\n")
        with pytest.raises(ApiError):
            Api(load(None), threading.Event()).once("Account", "getObject")
    assert len(proxy.requests) == 1 and b"192.0.2.7" in proxy.requests[0]
