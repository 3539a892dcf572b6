"""A call on a real socket: number of sends, duration and address."""

import socket
import ssl
import threading
import time
from urllib.parse import urlsplit

import pytest

from microcluster.accounts.shared import api_calls
from microcluster.accounts.shared.api_calls import LOCAL_ATTEMPTS, READ_ATTEMPTS
from microcluster.accounts.shared.errors import AccountError
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.credentials import Credentials
from microcluster.accounts.softlayer.errors import ApiError
from microcluster.accounts.softlayer.specs import Order
from tests.unit.breaking_server import ALERT, breaking_server, reset, write_plainly

KEY = "a-key-of-some-length-0123456789"
PATHS = ["/xmlrpc/v3.1/", "/rest/v3.1/"]
BREAKS = {
    "plain bytes": lambda connection: write_plainly(connection, b"HTTP/1.1 502 Bad Gateway\r\n\r\n"),
    "fatal alert": lambda connection: write_plainly(connection, ALERT),
    "end": lambda connection: None,
    "reset": reset,
    "half an answer": lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n<?xml"),
}
MADE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\nConnection: close\r\n\r\n"
    + b'{"id": 101}'
)
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"
    + b'{"id": 7}'
)


def api(server, path: str = PATHS[0], timeout_s: float = 20, **more) -> Api:
    key = Credentials("u", KEY, server.endpoint(path), timeout_s, authority=server.authority, **more)
    return Api(key, threading.Event(), 0.001)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("way", BREAKS)
@pytest.mark.parametrize("is_tls", [True, False], ids=["https", "http"])
def test_an_order_is_sent_once_however_its_connection_breaks_after_it(tmp_path, path, way, is_tls):
    with breaking_server(BREAKS[way], tmp_path if is_tls else None) as server, pytest.raises(ApiError) as lost:
        api(server, path).once("Virtual_Guest", "createObject", {"hostname": "gpu-0"})
    assert not lost.value.is_refusal
    assert len(server.requests) == 1 and b"gpu-0" in server.requests[0]


@pytest.mark.parametrize("status", [b"307 Temporary Redirect", b"302 Found"])
def test_an_order_is_not_sent_again_to_where_an_answer_redirects_it(status):
    def redirect(connection) -> None:
        place = server.endpoint(PATHS[0]).encode()
        connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nLocation: " + place + b"\r\n\r\n")

    with breaking_server(redirect) as server, pytest.raises(ApiError) as lost:
        api(server).once("Virtual_Guest", "createObject", {})
    assert not lost.value.is_refusal
    assert len(server.requests) == 1


def test_a_server_without_the_right_certificate_gets_no_key(tmp_path):
    with breaking_server(BREAKS["end"], tmp_path) as server:
        server.authority = None
        with pytest.raises(ApiError, match=r"(?i)certificate") as refused:
            api(server).once("Virtual_Guest", "createObject", {})
        assert refused.value.is_refusal and not refused.value.is_transient
        with pytest.raises(AccountError, match="the key was not sent. Name the authority's file as 'verify'"):
            SoftLayer(api(server)).whoami()
    assert server.requests == []


def dribble(content: bytes):
    """Send slowly enough that no limit on a single read is ever reached."""

    def act(connection) -> None:
        for place in range(len(content)):
            connection.sendall(content[place : place + 1])
            time.sleep(0.2)

    return act


@pytest.mark.parametrize(
    ("content", "is_tls"),
    [
        (ANSWER + b" " * 500, True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<?xml version='1.0'?>" + b" " * 500, False),
    ],
    ids=["in its head", "in its body"],
)
def test_an_answer_that_trickles_in_ends_with_its_calls_time(tmp_path, is_tls, content):
    head = content.index(b"\r\n\r\n") if b"close" in content else 0

    def act(connection) -> None:
        connection.sendall(content[:head])
        dribble(content[head:])(connection)

    with breaking_server(act, tmp_path if is_tls else None) as server:
        began = time.monotonic()
        with pytest.raises(ApiError, match="no whole answer within 2 s") as lost:
            api(server, timeout_s=2).once("Virtual_Guest", "createObject", {})
        assert time.monotonic() - began < 15, "the whole answer takes two minutes"
    assert not lost.value.is_refusal


def test_nothing_is_sent_once_the_time_of_a_call_is_over(monkeypatch):
    look_up = socket.getaddrinfo

    def slow(*args, **options):
        time.sleep(1.5)
        return look_up(*args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with breaking_server(lambda connection: connection.sendall(ANSWER)) as server, pytest.raises(ApiError):
        api(server, PATHS[1], timeout_s=1).once("Virtual_Guest", "createObject", {})
    assert server.requests == []


def test_an_order_has_more_time_for_its_answer_than_a_read():
    def answer_late(connection) -> None:
        time.sleep(1.5)
        connection.sendall(MADE)

    with breaking_server(answer_late) as server:
        client = api(server, PATHS[1], timeout_s=1)
        assert SoftLayer(client).order(Order("Virtual_Guest", "createObject", {})) == "101"
        with pytest.raises(ApiError, match="no whole answer within 1 s"):
            client.once("Virtual_Guest", "getObject", id=101)


def test_a_call_without_a_turn_in_time_is_not_sent_and_repeatable(monkeypatch):
    monkeypatch.setattr(api_calls, "LONGEST_TURN_S", 0.3)
    with breaking_server(lambda connection: connection.sendall(ANSWER)) as server:
        client = api(server, PATHS[1])
        client._limiter.back_off(1.5)
        with pytest.raises(ApiError, match="no turn within 0.3 s") as late:
            client.once("Virtual_Guest", "createObject", {})
        assert late.value.is_transient and late.value.is_refusal
        assert server.requests == []
        time.sleep(1.5)
        assert client.once("Virtual_Guest", "createObject", {}) == {"id": 7}
    assert len(server.requests) == 1


def test_the_certificate_of_the_emulated_account_stands_strict_verification(tmp_path):
    with breaking_server(lambda connection: connection.sendall(ANSWER), tmp_path) as server:
        context = ssl.create_default_context(cafile=server.authority)
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # Python 3.13 does so by itself.
        address = urlsplit(server.endpoint(""))
        for name in ("127.0.0.1", "localhost"):
            with socket.create_connection((address.hostname, address.port), 10) as raw:
                assert context.wrap_socket(raw, server_hostname=name).version()


LOCAL = Credentials("local", "local", "http://127.0.0.1:1/xmlrpc/v3.1/", 10.0)


def account_with(monkeypatch, answers) -> SoftLayer:
    api = Api(LOCAL, threading.Event(), 0.001)

    def once(*_, **__):
        answer = next(answers)
        if isinstance(answer, str):
            raise ApiError("calling Account::getObject", "no answer", answer)
        return answer

    monkeypatch.setattr(api, "once", once)
    return SoftLayer(api)


def test_breaking_connections_to_an_account_are_tried_as_often_as_distant_ones(monkeypatch):
    breaking = ["EOF occurred in violation of protocol"] * (LOCAL_ATTEMPTS + READ_ATTEMPTS - 1)
    account = account_with(monkeypatch, iter([*breaking, {"id": 7, "companyName": "ours"}]))
    assert account.whoami().account_id == "7"


def test_a_refused_connection_is_reported_soon(monkeypatch):
    answers = iter(["Connection refused"] * LOCAL_ATTEMPTS)
    with pytest.raises(AccountError, match="nobody answers"):
        account_with(monkeypatch, answers).whoami()
    assert list(answers) == []
