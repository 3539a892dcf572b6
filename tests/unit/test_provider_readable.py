"""Answers with characters that no parser takes: what a person wrote into one name must not hide a list."""

import json
import threading
import xmlrpc.client

import pytest

from emulator.softlayer import protocols
from emulator.softlayer.calls import Answer
from emulator.softlayer.faults import Fault
from microcluster.accounts.softlayer.api import Api, readable_json, readable_xml
from microcluster.accounts.softlayer.credentials import Credentials
from tests.unit.breaking_server import answer, breaking_server

HEAD = b"<?xml version='1.0'?><methodResponse><params><param><value><string>"
TAIL = b"</string></value></param></params></methodResponse>"
FORBIDDEN = [
    *(b"\x00", b"\x01", b"\x1b[31m", b"\xed\xa0\x80", b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xff", b"\xc3"),
    *(b"&#0;", b"&#x0;", b"&#27;", b"&#xD800;", b"&#56320;", b"&#xFFFE;", b"&#1114112;"),
]
ALLOWED = ["\u0085", "\u009b31m", "\u202e", "\u00e4\u20ac", "\U0001f511", "\t\n", "a &amp; b", "&#233;", "&#x1F511;"]


def read(body: bytes) -> str:
    return xmlrpc.client.loads(readable_xml(body))[0][0]


@pytest.mark.parametrize("content", FORBIDDEN)
def test_what_xml_forbids_is_replaced_and_the_rest_stays(content):
    text = read(HEAD + b"before" + content + b"after" + TAIL)
    assert text.startswith("before") and text.endswith("after") and "\ufffd" in text


@pytest.mark.parametrize("content", ALLOWED)
def test_what_xml_allows_stays_as_it_is(content):
    body = HEAD + content.encode() + TAIL
    assert readable_xml(body) == body
    assert read(body) == xmlrpc.client.loads(body)[0][0]


def test_a_body_that_declares_another_encoding_keeps_it():
    body = HEAD.replace(b"?>", b" encoding='iso-8859-1'?>") + "\u00fcber".encode("latin-1") + TAIL
    assert read(body) == "\u00fcber"


@pytest.mark.parametrize("content", ["\x00", "\x01\x1b[31m", "\ufffe", "\u009b", "\u202e", "\r\n", "a&#0;b"])
def test_every_text_of_the_emulated_account_can_be_read(content):
    rows = [{"id": 7, "label": f"before{content}after"}]
    (found,) = xmlrpc.client.loads(readable_xml(protocols.write_xmlrpc(Answer(rows))))[0][0]
    assert found["id"] == 7 and found["label"].startswith("before") and found["label"].endswith("after")
    fault = Fault("SoftLayer_Exception_Public", f"no{content}")
    with pytest.raises(xmlrpc.client.Fault, match="no"):
        xmlrpc.client.loads(readable_xml(protocols.write_xmlrpc(fault)))


def test_half_a_surrogate_pair_leaves_json_and_a_whole_one_stays():
    body = json.dumps({"label": "a\ud800b", "other": "\U0001f511"}).encode()
    assert json.loads(readable_json(body)) == {"label": "a?b", "other": "\U0001f511"}
    assert readable_json(b'{"label": "\\ud83d\\udd11') == b'{"label": "\\ud83d\\udd11'


def test_the_emulated_account_takes_no_half_of_a_surrogate_pair():
    body = json.dumps({"parameters": [{"label": "a\ud800b"}]}).encode()
    with pytest.raises(Fault, match="is not JSON"):
        protocols.read_rest("SoftLayer_Security_Ssh_Key/createObject.json", {}, body, None)


@pytest.mark.parametrize(
    ("path", "content"), [("/xmlrpc/v3.1/", HEAD + b"a&#0;b" + TAIL), ("/rest/v3.1/", b'"a\\ud800b"')]
)
def test_a_call_returns_such_an_answer(path, content):
    with breaking_server(answer(200, content)) as server:
        key = Credentials("u", "k", server.endpoint(path), 10)
        name = Api(key, threading.Event()).once("Account", "getCompanyName")
    assert name in ("a\ufffdb", "a?b")
