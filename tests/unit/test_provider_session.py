"""End of all ordering, and the values on Pulumi's wire."""

import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from google.protobuf import struct_pb2
from pulumi.runtime.proto import provider_pb2

from microcluster.accounts.paperspace.network_and_drive import Drives
from microcluster.accounts.shared import resource
from microcluster.accounts.shared.account import Identity, Resource
from microcluster.accounts.shared.errors import AccountError, EngineGoneError, PartialFailure
from microcluster.accounts.shared.order import Operation, Session
from microcluster.accounts.shared.plugin_server import ParentWatch
from microcluster.accounts.shared.plugin_servicer import SECRET, SIGNATURE, EngineLog, Provider, to_python, to_struct
from microcluster.accounts.shared.readiness import Readiness
from microcluster.accounts.softlayer.__main__ import SOFTLAYER
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.guest import Guests
from microcluster.core.home import Owner

URN = "urn:pulumi:v100::microcluster::softlayer:index:VirtualGuest::gpu-0"


def operation(life: ParentWatch, stop: threading.Event | None = None) -> Operation:
    session = Session(Broken, 1.0, stop or threading.Event())
    return Operation(URN, session, EngineLog("").of(URN), 1, lambda: not life.is_over())


@pytest.mark.parametrize("sign", [None, "the end of stdin", "another parent process", "a request to stop"])
def test_nothing_is_ordered_at_any_sign_that_the_engine_is_gone(monkeypatch, sign):
    life, stop = ParentWatch(), threading.Event()
    if sign == "the end of stdin":
        life.gone.set()
    if sign == "another parent process":
        monkeypatch.setattr("os.getppid", lambda: 1)
    if sign == "a request to stop":
        stop.set()
    said = "ordering guest gpu-0: the engine is gone or stops, so nothing was ordered"
    with pytest.raises(EngineGoneError, match=said) if sign else nullcontext():
        operation(life, stop).before_order("guest gpu-0")


def test_stack_and_name_come_from_the_urn():
    found = operation(ParentWatch())
    assert (found.stack, found.name) == ("v100", "gpu-0")


class Refusals:
    """Messages to the engine when a call fails."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def abort(self, code: object, details: str) -> None:
        self.told.append(details)

    def is_active(self) -> bool:
        return True


def test_an_unexpected_error_is_reported_without_the_key_in_it(tmp_path, monkeypatch):
    def broken(api, *_, **__):
        raise RuntimeError(f"header {api.credentials.api_key} is refused")

    monkeypatch.setattr(Api, "once", broken)
    (tmp_path / "softlayer.conf").touch(mode=0o600)
    (tmp_path / "softlayer.conf").write_text("[softlayer]\nusername = u\napi_key = a-long-secret-key\n")
    provider, refusals = Provider(SOFTLAYER, "", ParentWatch().is_over), Refusals()
    settings = to_struct({"configFile": str(tmp_path / "softlayer.conf")})
    provider.Configure(provider_pb2.ConfigureRequest(args=settings), refusals)
    provider.Read(provider_pb2.ReadRequest(urn=URN, id="101", inputs=to_struct({"mark": "1f3a9c42"})), refusals)
    assert len(refusals.told) == 1
    assert "RuntimeError: header (secret) is refused. This is a bug." in refusals.told[0]


def test_the_engine_is_told_that_secrets_are_to_come_unmarked():
    answer = Provider(SOFTLAYER, "", ParentWatch().is_over).Configure(provider_pb2.ConfigureRequest(), Refusals())
    assert (answer.acceptSecrets, answer.supportsPreview) == (False, True)


GUEST = {
    **{"mark": "1f3a9c42", "hostname": "gpu-0", "domain": "v100-1f3a9c42.microcluster", "datacenter": "lon06"},
    **{"flavor": "AC1_16X120X100", "os": "UBUNTU_18_64", "portSpeedMbps": 1000},
}


class Broken:
    """An account whose answers meet a fault of ours."""

    machine = "guest"
    secrets = ("a-long-secret-key",)

    def whoami(self) -> Identity:
        return Identity("278444", "", "u", "http://127.0.0.1:9")

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(f"{name}: a-long-secret-key")


def test_whatever_goes_wrong_after_an_order_its_id_reaches_the_state(monkeypatch):
    monkeypatch.setattr(resource, "adopt_or_order", lambda *_: "101")
    op = operation(ParentWatch())
    with pytest.raises(
        PartialFailure, match=r"is ordered.*RuntimeError: \w+: \(secret\). This is a bug."
    ) as unfinished:
        Guests().create(op, GUEST)
    assert unfinished.value.resource_id == "101"
    assert unfinished.value.outputs["accountId"] == "278444"


@pytest.mark.parametrize(
    ("resources", "standing"), [(Guests(), "ordered and billed"), (Drives(), "ordered, and not shown yet")]
)
def test_a_resource_that_the_account_did_not_show_is_never_called_unbilled(resources, standing):
    sought = Resource(resources.KIND, "101", "data", Owner("v100", "1f3a9c42"))
    building = Readiness(operation(ParentWatch()), SimpleNamespace(machine="guest"), sought)
    with (
        pytest.raises(PartialFailure, match=f"is {standing}: "),
        resource.recorded(operation(ParentWatch()), building, {}),
    ):
        raise AccountError("nobody answers")


def struct(values: dict) -> struct_pb2.Struct:
    wire = struct_pb2.Struct()
    wire.update(values)
    return wire


def test_whole_doubles_become_ints_wherever_they_stand():
    found = to_python(struct({"nodes": 2.0, "disks": [2000.0], "deep": {"port": 22.0}, "price": 4.5}))
    assert found == {"nodes": 2, "disks": [2000], "deep": {"port": 22}, "price": 4.5}
    assert all(isinstance(value, int) for value in (found["nodes"], found["disks"][0], found["deep"]["port"]))


def test_nulls_are_left_out_both_ways_and_a_secret_is_unwrapped():
    assert to_python(struct({"a": None, "b": {"c": None}})) == {"b": {}}
    there_and_back = to_python(to_struct({"a": None, "b": {"c": None, "d": 1}, "e": ({"f": None},)}))
    assert there_and_back == {"b": {"d": 1}, "e": [{}]}
    assert to_python(struct({"word": {SIGNATURE: SECRET, "value": "x"}})) == {"word": "x"}
