"""Calls: what is repeated, what never is, and what a message may show."""

import base64
import html
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote
from xml.parsers.expat import ExpatError

import pytest
import SoftLayer

from microcluster.accounts.shared import api_calls as shared
from microcluster.accounts.shared.api_calls import RateLimiter
from microcluster.accounts.shared.errors import WaitError
from microcluster.accounts.shared.redaction import redacted
from microcluster.accounts.softlayer import api as calls
from microcluster.accounts.softlayer import errors
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.credentials import Credentials
from microcluster.accounts.softlayer.errors import ApiError

KEY = "a-key-of-some-length-0123456789"


class Wire:
    """The transport of an official client: answers from a list, exceptions included."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.sent = 0

    def __call__(self, request):
        self.sent += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def api(monkeypatch):
    def build(*answers) -> tuple[Api, Wire]:
        wire = Wire(*answers)
        monkeypatch.setattr(
            calls, "new_client", lambda *_: SoftLayer.BaseClient(transport=wire, config_file="/dev/null")
        )
        return Api(Credentials("u", KEY, "http://127.0.0.1:9/xmlrpc/v3.1/", 5), threading.Event(), 0.001), wire

    return build


DROPPED = SoftLayer.TransportError(0, "connection reset")
REFUSED = SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Public", "no")
GONE = SoftLayer.SoftLayerAPIError("SoftLayer_Exception_ObjectNotFound", "Unable to find object with id of '1'.")
LIMITED = SoftLayer.SoftLayerAPIError("SoftLayer_Exception_WebService_RateLimitExceeded", "slow down")


TRANSIENT = [
    DROPPED,
    LIMITED,
    SoftLayer.TransportError(503, ""),
    SoftLayer.TransportError(500, "500 Server Error :: b'the gateway broke'"),
    SoftLayer.TransportError(429, "slow down"),
    SoftLayer.SoftLayerAPIError(500, "<html>oops</html>"),
    SoftLayer.SoftLayerAPIError(500, "Empty response."),
    SoftLayer.SoftLayerAPIError(200, "<html>sign in</html>"),
    SoftLayer.SoftLayerAPIError(200, "Empty response."),
    SoftLayer.SoftLayerAPIError(502, "Bad Gateway"),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Public", "Internal Error"),
    ExpatError("no xml"),
]


@pytest.mark.parametrize("fault", TRANSIENT)
def test_a_read_is_tried_again_after_a_transient_fault(api, fault):
    client, wire = api(fault, fault, {"id": 1})
    assert client.read("Account", "getObject") == {"id": 1}
    assert wire.sent == 3


KNOWN = [
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Order_InvalidData", "no such price"),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_InsufficientCapacity", "no room"),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Public", "Access Denied. "),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Public", "Invalid username/password"),
    SoftLayer.SoftLayerAPIError(500, "Access Denied. "),
    SoftLayer.SoftLayerAPIError(400, "no"),
    SoftLayer.exceptions.InvalidMethodParameters("-32602", "a parameter is missing"),
    SoftLayer.TransportError(403, "403 Client Error"),
]
UNKNOWN = [
    REFUSED,
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Public", "Something went wrong."),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_Order_Unheard_Of", "no"),
    SoftLayer.SoftLayerAPIError(500, "no"),
    SoftLayer.TransportError(408, "408 Client Error"),
    # The service says so of what an order has just made, too.
    GONE,
    SoftLayer.SoftLayerAPIError(404, "Unable to find object with id of '1'."),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_NotReady", "not ready"),
    SoftLayer.SoftLayerAPIError("SoftLayer_Exception_NotImplemented", "not implemented"),
]


@pytest.mark.parametrize(
    ("refused", "is_known"), [*((each, True) for each in KNOWN), *((each, False) for each in UNKNOWN)]
)
def test_a_refusal_is_not_repeated_and_certain_only_if_it_is_known(api, refused, is_known):
    client, wire = api(refused)
    with pytest.raises(ApiError) as error:
        client.read("Account", "getObject")
    assert wire.sent == 1
    assert error.value.is_refusal == is_known and not error.value.is_transient
    assert all({**errors.KNOWN_REFUSALS, **errors.KNOWN_TEXTS}.values()), "each has a source"


@pytest.mark.parametrize("fault", [each for each in TRANSIENT if each not in (LIMITED, TRANSIENT[4])])
def test_an_order_that_met_such_a_fault_may_have_been_accepted(api, fault):
    client, wire = api(fault, {"id": 1})
    with pytest.raises(ApiError) as error:
        client.once("Virtual_Guest", "createObject", {})
    assert wire.sent == 1
    assert not error.value.is_refusal


def crowd(limiter: RateLimiter, stop: threading.Event, count: int) -> int:
    """Let callers queue up behind one another; return how many got their turn."""
    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(lambda _: limiter.take(stop), range(count)))


def test_a_crowd_calls_no_faster_than_the_limit():
    limiter = RateLimiter(50)
    began = time.monotonic()
    assert crowd(limiter, threading.Event(), 40) == 40
    assert time.monotonic() - began >= 40 / 50 - shared.BURST_S - 0.05


def test_a_turn_that_does_not_come_in_time_is_not_taken():
    limiter = RateLimiter(50)
    limiter.back_off(60)
    assert not limiter.take(threading.Event(), 0.05)


def test_after_the_engines_stop_only_calls_whose_turn_is_near_are_sent():
    limiter, stop = RateLimiter(20), threading.Event()
    limiter.back_off(60)
    stop.set()
    with pytest.raises(WaitError, match="the engine asked to stop"):
        limiter.take(stop)
    limiter = RateLimiter(0.25)
    began = time.monotonic()
    crowd(limiter, stop, 2)
    assert time.monotonic() - began < 3, "the second one's turn would come in four seconds"


def test_a_request_to_stop_ends_the_wait_of_all_callers():
    limiter, stop = RateLimiter(0.1), threading.Event()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    with pytest.raises(WaitError):
        crowd(limiter, stop, 4)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("limited", [LIMITED, SoftLayer.TransportError(429, "slow down")])
def test_an_order_above_the_rate_limit_was_not_accepted_and_everybody_pauses(api, limited):
    client, _ = api(limited, {"id": 1})
    began = time.monotonic()
    with pytest.raises(ApiError) as error:
        client.once("Virtual_Guest", "createObject", {})
    assert error.value.is_rate_limit and error.value.is_refusal
    client.once("Account", "getObject")
    assert time.monotonic() - began > shared.RATE_LIMIT_PAUSE_S / 2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, 0), ({"Retry-After": "3"}, 3), ({"Retry-After": "900"}, 15), ({"Retry-After": "Sat"}, 0)],
)
def test_an_answer_that_asks_for_a_pause_gets_one_within_bounds(headers, seconds):
    assert shared.retry_after_s(headers) == seconds


@pytest.mark.parametrize("nonsense", [None, "", "<html>", 7, ["id"]])
def test_find_repeats_nonsense_returns_none_when_gone_and_raises_a_refusal(api, nonsense):
    client, wire = api(nonsense, {"id": 1}, GONE, REFUSED)
    assert client.find("Virtual_Guest", "1", "mask[id]") == {"id": 1}
    assert wire.sent == 2
    assert client.find("Virtual_Guest", "1", "mask[id]") is None
    with pytest.raises(ApiError):
        client.find("Virtual_Guest", "1", "mask[id]")


@pytest.mark.parametrize("answer", [None, True, [], {}, {"id": ""}, {"id": "soon"}])
def test_an_answer_that_names_no_id_may_stand_for_an_accepted_order(answer):
    with pytest.raises(ApiError, match="names no id") as error:
        calls.made_id(answer, "Virtual_Guest::createObject")
    assert not error.value.is_refusal


def test_a_read_gives_up_after_a_bounded_number_of_attempts(api):
    client, wire = api(*[DROPPED] * 50)
    with pytest.raises(ApiError):
        client.read("Account", "getObject")
    assert wire.sent == shared.READ_ATTEMPTS


def test_an_error_that_rest_hands_back_as_a_result_is_an_error(api):
    client, _ = api({"error": "no", "code": "SoftLayer_Exception_Public"})
    with pytest.raises(ApiError, match="no"):
        client.read("Account", "getObject")


def test_keys_never_stand_in_an_error(api):
    private = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----"
    client, _ = api(SoftLayer.SoftLayerAPIError("X", f"bad key {KEY} in {private}"))
    with pytest.raises(ApiError) as error:
        client.once("Account", "getObject")
    assert KEY not in str(error.value)
    assert "abc" not in str(error.value)


SECRET = "c4nary/key+of=some&length<0123456789"


@pytest.mark.parametrize(
    "said",
    [
        SECRET,
        quote(SECRET, safe=""),
        json.dumps({"key": SECRET}),
        html.escape(SECRET),
        *[base64.b64encode(f"{user}:{SECRET}".encode()).decode() for user in ("u", "us", "use", "user")],
        base64.urlsafe_b64encode(SECRET.encode()).decode(),
    ],
)
def test_a_secret_is_found_in_every_coat(said):
    shown = redacted(f"before {said} after", SECRET)
    assert "(secret)" in shown and "before" in shown and "after" in shown
    assert "c4nary" not in shown
    assert base64.b64encode(SECRET.encode()).decode()[8:20] not in shown


@pytest.mark.parametrize("shift", range(3))
@pytest.mark.parametrize("length", [30, 31, 32])
def test_base64_shows_at_most_a_byte_of_a_secret_at_each_edge(shift, length):
    secret = SECRET[:length]
    coded = base64.b64encode(b"\xff" * shift + secret.encode() + b"\xff" * ((-shift - length) % 3)).decode()
    shown = redacted(coded, secret)
    assert "(secret)" in shown
    assert len(shown.replace("(secret)", "")) <= 4 * bool(shift) + 4 * bool((shift + length) % 3)


def test_a_private_key_is_found_in_base64_too():
    coded = base64.b64encode(b"-----BEGIN OPENSSH PRIVATE KEY-----\nabc").decode()
    assert redacted(f"userdata {coded} end") == "userdata (private key) end"
