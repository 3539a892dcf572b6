"""The provider's protocol, without an account: start, previews, refusals and Cancel."""

import os

import grpc
import pytest
from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import provider_pb2

from microcluster.accounts.shared.plugin_servicer import to_struct
from microcluster.accounts.shared.spec import UNKNOWN
from tests.chaos.provider import named
from tests.integration.provider_cluster import guest
from tests.integration.provider_driver import Driver, Failed, Resource, relayed

NOWHERE = "/nonexistent/softlayer.conf"
GUEST = guest("gpu-0", backendRouterId=UNKNOWN, sshKeyIds=[UNKNOWN])


@pytest.fixture(scope="module")
def driver():
    with Driver(NOWHERE) as running:
        yield running


def test_the_plugin_returns_its_version(driver):
    assert driver.stub.GetPluginInfo(empty_pb2.Empty()).version.count(".") == 2


def test_a_preview_of_a_create_needs_no_account_and_passes_unknowns_through(driver):
    shown = driver.create("VirtualGuest", "gpu-0", GUEST, preview=True)
    assert shown.id == ""
    assert shown.outputs["sshKeyIds"] == [UNKNOWN]
    assert "publicIp" not in shown.outputs


def test_a_preview_of_an_update_keeps_what_is_known(driver):
    old = Resource("VirtualGuest", "gpu-0", "101", GUEST, {"privateIp": "10.113.7.2", "hostKey": "ssh-ed25519 A"})
    outputs = driver.update(old, {**GUEST, "tags": []}, preview=True).outputs
    assert (outputs["privateIp"], outputs["hostKey"], outputs["tags"]) == ("10.113.7.2", "ssh-ed25519 A", [])


def test_a_check_with_nulls_and_doubles_and_unknowns_passes(driver):
    news = struct_pb2.Struct()
    news.update({**GUEST, "portSpeedMbps": 1000.0, "imageId": None})
    assert not driver.stub.Check(provider_pb2.CheckRequest(**named("VirtualGuest", "gpu-0"), news=news)).failures


def test_an_input_that_is_not_known_is_passed_on_by_previews_alone(driver):
    with pytest.raises(Failed, match="an input of it is not known yet, so nothing was ordered or changed"):
        driver.create("VirtualGuest", "gpu-0", GUEST)
    old = Resource("VirtualGuest", "gpu-0", "101", {**GUEST, "backendRouterId": "1", "sshKeyIds": ["2"]}, {})
    with pytest.raises(Failed, match="an input of it is not known yet, so nothing was ordered or changed"):
        driver.update(old, GUEST)


def test_a_replaced_guest_is_deleted_first(driver):
    old = Resource("VirtualGuest", "gpu-0", "101", {**GUEST, "backendRouterId": "1"}, {})
    answer = driver.diff(old, {**old.inputs, "flavor": "AC2_16X120X100"})
    assert (list(answer.replaces), answer.deleteBeforeReplace) == (["flavor"], True)


def test_changed_settings_never_replace_the_provider(driver):
    answer = driver.stub.DiffConfig(
        provider_pb2.DiffRequest(old_inputs=to_struct({"configFile": "a"}), news=to_struct({"configFile": "b"}))
    )
    assert list(answer.replaces) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("method", ["GetPluginInfo", "Configure", "Create", "Delete", "Cancel"])
def test_a_call_of_another_user_is_refused(driver, method):
    request = getattr(provider_pb2, f"{method}Request", empty_pb2.Empty)()
    with (
        relayed("nobody", driver.address) as stub,
        pytest.raises(grpc.RpcError, match="only the user who started it may"),
    ):
        getattr(stub, method)(request)
    with relayed("root", driver.address) as stub:
        assert stub.GetPluginInfo(empty_pb2.Empty()).version


def test_a_second_configuration_with_other_values_is_refused(driver):
    same = to_struct({"timeScale": str(driver.time_scale), "configFile": NOWHERE})
    driver.stub.Configure(provider_pb2.ConfigureRequest(args=same))
    other = to_struct({"timeScale": str(driver.time_scale), "configFile": "/tmp/another.conf"})
    with pytest.raises(grpc.RpcError, match="it works with other settings already"):
        driver.stub.Configure(provider_pb2.ConfigureRequest(args=other))


def test_cancel_twice_is_harmless():
    with Driver(NOWHERE) as driver:
        driver.cancel()
        driver.cancel()
        assert driver.create("VirtualGuest", "gpu-0", GUEST, preview=True).outputs
