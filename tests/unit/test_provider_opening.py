"""Opening an account on this computer, where nobody may listen and a connection may break."""

import threading

import pytest

from providers.rental.errors import AccountError
from providers.rental.wire import LOCAL_ATTEMPTS, READ_ATTEMPTS
from providers.softlayer.account import SoftLayer
from providers.softlayer.api import Api
from providers.softlayer.credentials import Credentials
from providers.softlayer.errors import ApiError

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


def test_an_account_whose_connections_break_is_asked_as_often_as_one_far_away(monkeypatch):
    breaking = ["EOF occurred in violation of protocol"] * (LOCAL_ATTEMPTS + READ_ATTEMPTS - 1)
    account = account_with(monkeypatch, iter([*breaking, {"id": 7, "companyName": "ours"}]))
    assert account.whoami().account_id == "7"


def test_a_refused_connection_is_reported_soon(monkeypatch):
    answers = iter(["Connection refused"] * LOCAL_ATTEMPTS)
    with pytest.raises(AccountError, match="nobody answers"):
        account_with(monkeypatch, answers).whoami()
    assert list(answers) == []
