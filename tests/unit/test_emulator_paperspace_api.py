"""The emulated Paperspace API accepts and shows what the vendor describes, and refuses everything else in the vendor's shape."""

from pathlib import Path
from typing import get_args

import pytest

from emulator.paperspace.api import OPERATIONS
from tests.unit.emulated_paperspace import UNDESCRIBED, EmulatedPaperspace, Refused, order
from tests.unit.paperspace_contract import contract, problems_of_answer

HOSTILE = "old [/data] \x1b[31m\u202e\x9b\n\x00 <b>"


@pytest.fixture
def account(tmp_path: Path) -> EmulatedPaperspace:
    return EmulatedPaperspace(tmp_path)


def refused(account: EmulatedPaperspace, method: str, path: str, **given: object) -> tuple[int, str]:
    with pytest.raises(Refused) as refusal:
        account.call(method, path, **given)
    return refusal.value.status, refusal.value.code


def test_every_operation_has_the_vendors_name_input_and_orders():
    described = {each.name: each for each in contract()[1]}
    ours = {each.name: each for each in OPERATIONS if each.path not in UNDESCRIBED}
    assert ours.keys() == described.keys()
    for name, operation in ours.items():
        wanted = described[name]
        assert (operation.method, operation.path) == (wanted.method, wanted.path)
        inputs = operation.inputs.model_fields
        assert {field + ("" if given.is_required() else "~") for field, given in inputs.items()} == set(wanted.fields)
        for field, given in inputs.items():
            kind = wanted.fields.get(field) or wanted.fields[f"{field}~"]
            words = {each for each in get_args(given.annotation) if isinstance(each, str)}
            assert words == ({*kind.split("|")} if words or "|" in kind else set()), (name, field)


def test_each_operation_once_keeps_to_the_description(account):
    call = account.call
    network, script = account.network(), call("POST", "/startup-scripts", name="boot", script="true")["id"]
    drive = account.drive(network)["id"]
    machine = account.ready(networkId=network, publicIpType="static", startupScriptId=script)
    assert call("GET", "/machine-events", machineId=machine)["items"]
    [address] = call("GET", "/public-ips")["items"]
    assert address["assignedMachineId"] == machine
    account.stop(machine)
    call("PUT", f"/machines/{machine}", name="renamed", publicIpType="static")
    call("PATCH", f"/machines/{machine}/start")
    account.wait(machine, "ready")
    call("PUT", f"/private-networks/{network}", name="other")
    call("PUT", f"/shared-drives/{drive}", name="other")
    call("PUT", f"/startup-scripts/{script}", script="false")
    for path in ("machines", "private-networks", "shared-drives", "startup-scripts", "os-templates"):
        call("GET", f"/{path}")
    for path in (f"private-networks/{network}", f"shared-drives/{drive}", f"startup-scripts/{script}", "auth/session"):
        call("GET", f"/{path}")
    call("GET", "/machine-availability", machineType="P4000x2", region="ny2")
    account.stop(machine)
    call("DELETE", f"/machines/{machine}")
    account.gone(machine)
    for path in (f"shared-drives/{drive}", f"startup-scripts/{script}", f"private-networks/{network}"):
        call("DELETE", f"/{path}")
    call("DELETE", f"/public-ips/{address['ip']}")
    assert account.called == {each.name for each in contract()[1]}


def test_the_description_notices_a_wrong_answer():
    assert problems_of_answer("DELETE", "/private-networks/n1", 200, {"id": 7})
    assert problems_of_answer("GET", "/machines/ps1", 404, {"message": "gone"})
    assert problems_of_answer("GET", "/public-ips", 200, {"hasMore": False, "items": [{"ip": "a"}]})


@pytest.mark.parametrize(
    "wrong",
    [
        *({"nodes": 2}, {"id": "ps1"}, {"name": ""}, {"name": 7}, {"name": None}, {"region": "lon1"}),
        *({"diskSize": "50"}, {"diskSize": 0}, {"diskSize": 51}, {"startOnCreate": "true"}),
        *({"publicIpType": "elastic"}, {"machineType": "P9000"}, {"templateId": "tvimtol9"}),
    ],
)
def test_a_machine_with_a_wrong_property_is_refused_and_nothing_is_ordered(account, wrong):
    assert refused(account, "POST", "/machines", **(order() | wrong)) == (400, "BAD_REQUEST")
    assert account.call("GET", "/machines")["items"] == []
    assert account.account.store.billing_items == account.account.store.networks == {}


def test_what_is_not_emulated_says_so_and_is_counted(account):
    assert refused(account, "GET", "/machines/ps1/accessors") == (501, "METHOD_NOT_SUPPORTED")
    for name in ("autoShutdownEnabled", "autoSnapshotEnabled", "restorePointEnabled", "takeInitialSnapshot"):
        status, body = account.answer("POST", "/machines", **order(), **{name: True})
        assert status == 501
        assert name in body["message"]
    for order_of in (order() | {"startOnCreate": False}, order()):  # The second one is without a network.
        assert refused(account, "POST", "/machines", **order_of) == (501, "METHOD_NOT_SUPPORTED")
    assert sum(account.account.not_emulated.values()) == 6


def test_regions_have_to_fit_together(account):
    network = account.network(region="ams1")
    assert refused(account, "POST", "/machines", **order(), networkId=network) == (400, "BAD_REQUEST")
    with pytest.raises(Refused):
        account.drive(network)


def test_an_unknown_object_is_404_except_a_network_which_is_null(account):
    for path in ("machines/x", "shared-drives/x", "startup-scripts/x"):
        assert refused(account, "GET", f"/{path}") == (404, "NOT_FOUND")
    assert account.call("GET", "/private-networks/x") is None


def test_a_network_in_use_stays_and_its_addresses_are_its_own(account):
    network = account.network()
    drive = account.drive(network)
    machine = account.call("GET", f"/machines/{account.order(networkId=network)}")
    assert drive["mountPoint"].startswith("\\\\10.64.21.")
    assert machine["privateIp"] not in drive["mountPoint"]
    assert (machine["ram"], machine["region"]) == (str(60 * 1024**3), "East Coast (NY2)")
    assert refused(account, "DELETE", f"/private-networks/{network}") == (409, "CONFLICT")


def test_lists_are_paged_in_the_order_that_is_asked_for(account):
    for name in ("b", "a", "c"):
        account.network(name)
    first = account.call("GET", "/private-networks", orderBy="name", order="asc", limit=2)
    second = account.call("GET", "/private-networks", orderBy="name", order="asc", limit=2, after=first["nextPage"])
    assert [each["name"] for each in (*first["items"], *second["items"])] == ["a", "b", "c"]
    assert (first["hasMore"], second["hasMore"], "nextPage" in second) == (True, False, False)
    newest_first = account.call("GET", "/private-networks")["items"]
    assert [each["name"] for each in newest_first] == ["c", "a", "b"]


def test_a_page_goes_on_behind_its_cursor_when_that_object_is_gone(account):
    networks = [account.network(name) for name in ("a", "b", "c")]
    first = account.call("GET", "/private-networks", limit=1)
    account.call("DELETE", f"/private-networks/{networks[2]}")
    rest = account.call("GET", "/private-networks", after=first["nextPage"])["items"]
    assert [each["name"] for each in rest] == ["b", "a"]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 121}, {"after": "?"}, {"orderBy": "region"}, {"x": 1}])
def test_a_list_that_is_asked_for_wrongly_is_refused(account, wrong):
    assert refused(account, "GET", "/private-networks", **wrong) == (400, "BAD_REQUEST")


def test_every_name_may_be_hostile_and_comes_back_as_it_was_written(account):
    network = account.network(HOSTILE)
    machine = account.order(HOSTILE, networkId=network)
    script = account.call("POST", "/startup-scripts", name=HOSTILE, script=HOSTILE)
    assert script["name"] == account.drive(network, HOSTILE)["name"] == HOSTILE
    assert account.call("GET", f"/machines/{machine}")["name"] == HOSTILE
    assert account.call("GET", f"/private-networks/{network}")["name"] == HOSTILE


def test_without_a_valid_key_only_templates_and_an_empty_session_are_shown(account):
    for key in (None, "wrong"):
        assert account.answer("GET", "/machines", key)[0] == 401
        assert account.answer("POST", "/machines", key, **order())[0] == 401
        assert account.call("GET", "/auth/session", key) is None
        assert account.call("GET", "/os-templates", key)["items"]


def test_a_member_sees_no_machine_that_was_not_assigned_and_orders_nothing(tmp_path):
    account = EmulatedPaperspace(tmp_path, member_key="member")
    machine = account.ready()
    assert account.call("GET", "/machines", "member")["items"] == []
    assert account.answer("GET", f"/machines/{machine}", "member")[0] == 404
    for path in ("/private-networks", "/shared-drives", "/public-ips", "/startup-scripts"):
        assert account.answer("GET", path, "member")[0] == 403
    assert account.answer("POST", "/machines", "member", **order())[0] == 403
    for method, path in (("DELETE", f"/machines/{machine}"), ("PATCH", f"/machines/{machine}/stop")):
        assert account.answer(method, path, "member")[0] == 403
    assert account.call("GET", "/auth/session", "member")["user"]["teamMemberships"][0]["isAdmin"] is False


def test_answers_show_a_drives_password_and_never_a_scripts_text(account):
    made = account.call("POST", "/startup-scripts", name="boot", script="echo secret")
    assert "secret" not in str(made) + str(account.call("GET", "/startup-scripts"))
    network = account.network()
    drive = account.drive(network)
    [listed] = account.call("GET", "/shared-drives")["items"]
    assert listed == account.call("GET", f"/shared-drives/{drive['id']}") == drive
    assert drive["password"]
