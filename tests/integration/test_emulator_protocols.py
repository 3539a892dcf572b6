"""Both protocols over the wire, as the Python client, the Go client and careless programs use them."""

from typing import Any

import pytest
import requests
import SoftLayer

from tests.integration.test_emulator_account import client_of, order


@pytest.fixture(params=["xmlrpc", "rest"])
def client(request, account_emulator):
    return client_of(account_emulator, request.param)


@pytest.fixture(scope="module")
def guest_id(account_emulator):
    return order(client_of(account_emulator), "wired")


def ask(emulator: Any, path: str, user: str = "local:KEY") -> tuple[int, Any]:
    """Ask over REST by hand."""
    name, _, key = user.replace("KEY", emulator.key).partition(":")
    answer = requests.get(f"{emulator.rest_endpoint}{path}", auth=(name, key) if user else None, timeout=20)
    return answer.status_code, answer.json()


def test_a_missing_object_is_404_over_rest_with_text_and_code(account_emulator):
    status, refused = ask(account_emulator, "SoftLayer_Virtual_Guest/4711/getObject.json")
    assert (status, refused["code"]) == (404, "SoftLayer_Exception_ObjectNotFound")
    assert "4711" in refused["error"]


@pytest.mark.parametrize(
    "service", ["SoftLayer_Account/getObject", "SoftLayer_Network_Pod/getAllObjects", "SoftLayer_X/y"]
)
@pytest.mark.parametrize("user", ["", ":KEY", "local:wrong", "local:local", "nobody:KEY"])
def test_without_the_key_every_call_is_refused(account_emulator, service, user):
    status, refused = ask(account_emulator, f"{service}.json", user)
    assert (status, refused["error"]) == (401, "Invalid username/password")


def test_a_filter_with_another_root_is_silently_ignored(client, guest_id):
    elsewhere = {"sshKeys": {"label": {"operation": "^= x"}}}
    assert guest_id in [each["id"] for each in client.call("Account", "getVirtualGuests", filter=elsewhere)]


@pytest.mark.parametrize("wrong", [{"hostname": {"operation": "^= wired"}}, {"virtualGuests": {"hostname": "wired"}}])
def test_a_filter_without_a_root_or_an_operation_is_refused(client, wrong):
    with pytest.raises(SoftLayer.SoftLayerAPIError, match="not valid for|could not be read"):
        client.call("Account", "getVirtualGuests", filter=wrong)


def test_dates_are_text_with_their_offset(client, guest_id):
    created = client.call("Virtual_Guest", "getObject", id=guest_id)["createDate"]
    assert isinstance(created, str)
    assert created[10] == "T"
    assert created.endswith("-06:00")
