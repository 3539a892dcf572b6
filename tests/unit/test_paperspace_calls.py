"""Calls of the Paperspace provider: sent once, with the key to its own account only, and no answer believed unchecked."""

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from microcluster.accounts.paperspace import api, views
from microcluster.accounts.paperspace.account import AccountError, Paperspace
from microcluster.accounts.paperspace.api import Api, ApiError
from microcluster.accounts.paperspace.credentials import Credentials, CredentialsError, load
from tests.unit.breaking_server import ALERT, answer, breaking_server, write_plainly

KEY = "0123456789abcdef0123456789abcdef"


def api_for(server: Any) -> Api:
    return Api(Credentials(KEY, server.endpoint("/v1"), server.authority), threading.Event(), 0.01)


@pytest.mark.parametrize(
    "act",
    [
        lambda connection: write_plainly(connection, b"not TLS at all"),
        lambda connection: write_plainly(connection, ALERT),
        lambda connection: connection.shutdown(socket.SHUT_RDWR),
    ],
    ids=["plain bytes", "an alert", "the end"],
)
def test_an_order_whose_tls_connection_breaks_is_sent_once_and_is_ambiguous(tmp_path, act):
    with breaking_server(act, tmp_path) as server:
        with pytest.raises(ApiError) as lost:
            api_for(server).once("POST", "/machines", {"name": "gpu-0"})
        assert len(server.requests) == 1
    assert not lost.value.is_refusal


def test_an_answer_that_trickles_in_ends_with_its_calls_time(monkeypatch):
    def dribble(connection: socket.socket) -> None:
        for _ in range(300):
            connection.sendall(b"H")
            time.sleep(0.2)

    monkeypatch.setattr(api, "LONGEST_CALL_S", 2.0)
    began = time.monotonic()
    with breaking_server(dribble) as server, pytest.raises(ApiError, match="no whole answer within 2 s") as lost:
        api_for(server).once("POST", "/machines", {"name": "gpu-0"})
    assert time.monotonic() - began < 30, "the whole answer takes a minute"
    assert not lost.value.is_refusal


def test_a_redirected_order_goes_nowhere_else(tmp_path):
    with breaking_server(answer(200, b'{"id": "x"}')) as elsewhere:
        there = f"Location: {elsewhere.endpoint('/v1/machines')}\r\n"
        with breaking_server(answer(307, b"", there)) as server, pytest.raises(ApiError) as lost:
            api_for(server).once("POST", "/machines", {"name": "gpu-0"})
        assert elsewhere.requests == []
    assert not lost.value.is_refusal


def test_an_untrusted_certificate_never_sees_the_key(tmp_path):
    with breaking_server(answer(200, b"{}"), tmp_path) as server:
        without_authority = Api(Credentials(KEY, server.endpoint("/v1")), threading.Event(), 0.01)
        with pytest.raises(ApiError) as refused:
            without_authority.once("GET", "/auth/session")
        assert not any(KEY.encode() in request for request in server.requests)
    assert refused.value.is_refusal


@pytest.mark.parametrize(
    ("status", "body", "is_refusal", "is_transient"),
    [
        (400, {"code": "BAD_REQUEST", "message": "no"}, True, False),
        (409, {"code": "CONFLICT", "message": "busy", "details": {}}, True, False),
        (429, {"code": "TOO_MANY_REQUESTS", "message": "slowly"}, True, True),
        (408, {"code": "TIMEOUT", "message": "late"}, False, True),
        (500, {"code": "INTERNAL_SERVER_ERROR", "message": "oh"}, False, True),
        (502, None, False, True),
        (418, {"code": "TEAPOT", "message": "what"}, False, False),
        (200, {"code": "INTERNAL_SERVER_ERROR", "message": "oh"}, False, True),
        (200, None, False, True),
    ],
)
def test_only_known_refusals_are_certain(status, body, is_refusal, is_transient):
    content = b"<html>a gateway</html>" if body is None else json.dumps(body).encode()
    with breaking_server(answer(status, content)) as server, pytest.raises(ApiError) as failed:
        api_for(server).once("POST", "/machines", {"name": "gpu-0"})
    assert (failed.value.is_refusal, failed.value.is_transient) == (is_refusal, is_transient)


def test_neither_key_nor_control_characters_of_an_answer_reach_a_person():
    body = {"code": "BAD_REQUEST", "message": f"\x1b[2Jno key {KEY}", "issues": [{"message": "\u202ename"}]}
    with breaking_server(answer(400, json.dumps(body).encode())) as server, pytest.raises(ApiError) as failed:
        api_for(server).once("POST", "/machines", {"name": "gpu-0"})
    assert str(failed.value) == "POST /machines: no key (secret); name (BAD_REQUEST)"


def test_a_key_that_the_api_answers_with_null_is_no_key():
    with breaking_server(answer(200, b"null")) as server:
        account = Paperspace(api_for(server))
        with pytest.raises(AccountError, match="does not know this key"):
            account.whoami()


@pytest.mark.parametrize("found", [b"null", b'{"id": "n1", "dtDeleted": "2026-01-01T00:00:00.000Z"}'])
def test_what_is_null_or_shown_as_deleted_is_gone(found):
    with breaking_server(answer(200, found)) as server:
        assert api_for(server).find("/private-networks", "n1") is None


def api_of(*answers: dict[str, Any]) -> Api:
    """An API that gives these pages one after the other, and the last one for ever."""
    queue, made = list(answers), Api(Credentials(KEY), threading.Event(), 0.001)
    made.read = lambda path, **_: queue.pop(0) if len(queue) > 1 else queue[0]
    return made


def page(*names: str, more: str | None = None) -> dict[str, Any]:
    items = [{"id": name, "dtCreated": f"2026-01-01T00:00:0{name}"} for name in names]
    return {"items": items, "hasMore": more is not None, "nextPage": more}


@pytest.mark.parametrize(
    ("answers", "names"),
    [
        ([page("1", "2")], "12"),
        ([page("1", more="a"), page("2"), page("1", more="a"), page("2")], "12"),
        (
            [page("1", more="a"), page("3"), page("1", more="a"), page("2", "3"), page("1", more="a"), page("2", "3")],
            "123",
        ),
        ([page("2", more="a"), page("1"), page("1", more="a"), page("2"), page("1", more="a"), page("2")], "12"),
    ],
    ids=["one page", "two alike", "a row slipped out", "another order"],
)
def test_a_list_of_several_pages_counts_once_two_readings_agree(answers, names):
    assert "".join(row["id"] for row in api_of(*answers).list("/x")) == names


def test_a_list_with_endless_pages_is_an_error_and_not_empty():
    with pytest.raises(ApiError, match="truncated list"):
        api_of(page("1", more="a")).list("/x")


def test_a_drives_size_is_read_as_bytes_or_gb_number_or_text():
    sizes = {"268435456000": 250, 268435456000: 250, 250: 250, "1000": 1000, None: 0}
    assert {size: views.size_gb({"size": size}) for size in sizes} == sizes
    assert views.drive({"id": "d1", "size": 300}).price == "the price of its size", "which no list has"


def test_a_mount_point_is_read_with_either_slashes_and_otherwise_not_believed():
    for unc in ("\\\\10.64.92.2\\sdv", "//10.64.92.2/sdv", "10.64.92.2/sdv/"):
        assert views.mount_point({"mountPoint": unc}) == ("10.64.92.2", "sdv")
    for text in ("//10.0.0.1/a b", "//10.0.0.1/$(id)", "nothing", ""):
        assert views.mount_point({"mountPoint": text}) == (None, None)


def key_file(folder: Path, text: str) -> str:
    path = folder / "key"
    path.touch(mode=0o600)
    path.write_text(text)
    return str(path)


def test_a_named_file_alone_counts_with_a_key_or_key_and_endpoint(tmp_path):
    exported = {"PAPERSPACE_API_KEY": "another"}
    assert load(key_file(tmp_path, f"{KEY}\n"), exported) == Credentials(KEY)
    section = f"[paperspace]\napi_key = {KEY}\nendpoint_url = http://127.0.0.1:8180/v1/\n"
    assert load(key_file(tmp_path, section), exported) == Credentials(KEY, "http://127.0.0.1:8180/v1")
    assert load(None, exported) == Credentials("another")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "none found"), (f"api_key = {KEY}\n", r"not a \[paperspace\] file"), (f"{KEY}\u20ac", "no key has")],
)
def test_a_file_that_cannot_be_used_is_refused_without_quoting_the_key(tmp_path, text, sentence):
    with pytest.raises(CredentialsError, match=sentence) as refused:
        load(key_file(tmp_path, text))
    assert KEY not in str(refused.value)
