"""The two protocols: calls as clients really send them, and answers as they read them."""

import json
import xmlrpc.client

import pytest

from emulator.softlayer import protocols
from emulator.softlayer.calls import Answer, Credentials
from emulator.softlayer.faults import Fault

HEADERS = {
    "authenticate": {"username": "local", "apiKey": "local"},
    "SoftLayer_Virtual_GuestInitParameters": {"id": "12"},
    "SoftLayer_ObjectMask": {"mask": "mask[id]"},
    "SoftLayer_Virtual_GuestObjectFilter": {},
    "resultLimit": {"limit": 5, "offset": 10},
}


def xml(*arguments: object) -> bytes:
    text = xmlrpc.client.dumps(({"headers": HEADERS}, *arguments), "editObject", allow_none=True)
    return ("<?xml version='1.0' encoding='iso-8859-1'?>\n" + text.split("\n", 1)[1]).encode()


def test_an_xmlrpc_body_is_utf8_whatever_its_prolog_says():
    call = protocols.read_xmlrpc("SoftLayer_Virtual_Guest", xml({"notes": "für später"}))
    assert call.arguments == ({"notes": "für später"},)
    assert (call.method, call.identifier, call.mask) == ("editObject", "12", "mask[id]")
    assert (call.filter, call.limit, call.offset) == ({}, 5, 10)
    assert call.credentials.username == "local"


@pytest.mark.parametrize("body", [b"", b"<html/>", b"\xff\xfe", b"<methodCall><methodName>x</methodName></methodCall>"])
def test_a_body_that_is_no_call_is_a_parse_fault(body):
    with pytest.raises(Fault) as fault:
        protocols.read_xmlrpc("SoftLayer_Account", body)
    assert fault.value.code == "-32700"


@pytest.mark.parametrize(
    ("path", "identifier"),
    [("SoftLayer_Account/getObject.json", None), ("SoftLayer_Virtual_Guest/7/getObject.json", "7")],
)
def test_a_rest_path_names_object_and_method_and_limits_have_offset_first(path, identifier):
    call = protocols.read_rest(path, {"resultLimit": "20,10"}, b"", Credentials())
    assert (call.identifier, call.method, call.offset, call.limit) == (identifier, "getObject", 20, 10)


def test_nothing_and_lists_keep_their_form_on_both_protocols():
    value = {"nothing": None, "list": [1, 2.5, True], "text": "für"}
    assert json.loads(protocols.write_rest(Answer(value))) == value
    assert xmlrpc.client.loads(protocols.write_xmlrpc(Answer(value)))[0][0] == value
