"""The VirtualGuest resource: adopted or ordered once, ready when it is returned, not billed any more when it is deleted."""

from collections.abc import Mapping
from typing import Any

from providers.grpc.properties import Problem, problems
from providers.grpc.resource_protocol import Created, Live
from providers.rental import machine
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.closing import check_ours
from providers.rental.idempotent_order import adopt_or_order
from providers.rental.operation import Operation
from providers.rental.readiness import Readiness
from providers.rental.waiting import Pending
from providers.softlayer import guest_order, guest_view, security_group_attachment, userdata
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError
from providers.softlayer.guest_order import GuestSpec

KIND = "VirtualGuest"
REPLACE_ON = frozenset(
    {"mark", "hostname", "domain", "datacenter", "flavor", "os", "imageId", "dataDisksGb"}
    | {"backendRouterId", "privateVlanId", "sshKeyIds"}
)
CHANGED_LATER = ("publicSecurityGroupIds", "privateSecurityGroupIds")
"""What is put right after an adoption, as in any update."""
TIMEOUT_S = 90 * 60.0
"""GPU guests with large images take some 20 minutes; the vendor's own tools allow 90."""


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(GuestSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Price a new guest by the catalog; a living one keeps what it has."""
    if old:
        return {key: old.get(key) for key in guest_view.OUTPUTS}
    price = guest_order.catalog_price(inputs)
    return {"pricePerHour": price} if price else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the guest that an interrupted run ordered, else order it; return it ready."""
    spec, backend = GuestSpec.of(inputs), op.backend()
    key = userdata.make_host_key()
    made = adopt_or_order(op, backend, order_request(spec, key))
    guest_id, host_key = (made, key.public) if isinstance(made, str) else _adopt(op, backend.account, spec, made)
    return Created(guest_id, _finish(op, backend, spec, guest_id, host_key))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the guest; a cancelled one is gone, one that is not ready is a partial failure."""
    backend, owner = op.backend(old.get("accountId")), _owner(op, inputs)
    guest = machine.read(op, backend, owner, resource_id, inputs=inputs, old=old)
    if guest is None:
        return None
    if inputs:
        check_ours(guest, owner, "reading")
    live = _drifted(guest, inputs) if inputs else _imported(op, backend.account, guest)
    host_key = old.get("hostKey") or _host_key(backend.account, resource_id)
    outputs = {**guest.outputs, "hostKey": host_key, "accountId": backend.identity().account_id}
    machine.check_ready(op, backend, guest, live, outputs)
    return Live(live, outputs)


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with a guest that was not ready, and change in place what can be changed in place."""
    backend = op.backend(old.get("accountId"))
    host_key = old.get("hostKey") or _host_key(backend.account, resource_id)
    return _finish(op, backend, GuestSpec.of(inputs), resource_id, host_key)


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Cancel the guest and return when the account shows that it is billed no more."""
    machine.delete(op, op.backend(old.get("accountId")), _owner(op, inputs), resource_id)


def order_request(spec: GuestSpec, key: userdata.HostKey) -> OrderRequest:
    """Write down what the order of a guest asks for."""
    what = f"guest {spec.hostname} of {spec.owner}"
    content = (spec, userdata.cloud_config(key, str(spec.owner), spec.hostname))
    return OrderRequest(
        KIND, spec.owner, what, spec.hostname, content, hostname=spec.hostname, key_ids=spec.ssh_key_ids
    )


def _owner(op: Operation, inputs: Mapping[str, Any]) -> marks.Owner:
    """Read from the inputs whose guest it is; in an import there are none."""
    return marks.owner_in_domain(inputs.get("domain")) or marks.Owner(op.stack, str(inputs.get("mark") or ""))


def _adopt(op: Operation, account: Account, spec: GuestSpec, guest: Thing) -> tuple[str, str | None]:
    key = _host_key(account, guest.id)
    flaws = [] if key else ["its user data holds no host key"]
    flaws += ["it is billed by the month"] if guest.row.get("hourlyBillingFlag") is False else []
    wanted = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    machine.check_adoptable(guest, wanted, CHANGED_LATER, flaws)
    op.log.info(f"Goes on with {guest.label}, whose order was accepted before.")
    return guest.id, key


def _host_key(account: Account, guest_id: str) -> str | None:
    """Derive the public host key from the user data that the guest was ordered with."""
    guest = account.api.find("Virtual_Guest", guest_id, "mask[id,userData[value]]") or {}
    values = [str(each.get("value") or "") for each in guest.get("userData") or []]
    return next((key for key in map(userdata.public_part, values) if key), None)


def _finish(op: Operation, backend: Backend, spec: GuestSpec, guest_id: str, host_key: str | None) -> dict[str, Any]:
    """Wait until the guest is ready, and give it what no order carries; from here on it costs money."""
    account: Account = backend.account
    known = {"guestId": guest_id, "hostKey": host_key, "accountId": account.identity().account_id}
    building = Readiness(op, backend, spec.owner, guest_id, spec.hostname)
    with machine.recorded(op, building, known):
        _label(account, spec, building.read())
        guest = building.wait().row
        _set_port_speed(account, spec, guest)
        guest = security_group_attachment.settle(op, account, guest, spec)
        _label(account, spec, guest_view.thing(guest))
    return {**guest_view.outputs(guest), **known}


def _label(account: Account, spec: GuestSpec, shown: Thing | Pending) -> None:
    """Give the guest its tags and notes as soon as it is shown; one that is still too fresh gets them when it is ready."""
    if isinstance(shown, Pending) or not shown.is_alive:
        return
    guest = shown.row
    guest_id, notes = int(guest["id"]), _notes(spec.domain, spec.hostname)
    try:
        if guest_view.tags(guest) != set(spec.tags):
            account.api.ensure("Virtual_Guest", "setTags", ",".join(spec.tags), id=guest_id)
        if guest.get("notes") != notes:
            account.api.ensure("Virtual_Guest", "editObject", {"notes": notes}, id=guest_id)
    except ApiError as error:
        if not error.is_gone:
            raise
        # A list that lags showed it; the wait that follows tells whether it is too fresh or gone for good.


def _notes(domain: str, hostname: str) -> str:
    return f"{marks.notes(marks.owner_of(domain))} {hostname}"


def _set_port_speed(account: Account, spec: GuestSpec, guest: guest_view.Guest) -> None:
    sides = {"primaryNetworkComponent": "Public", "primaryBackendNetworkComponent": "Private"}
    for side, name in sides.items():
        if (guest.get(side) or {}).get("maxSpeed") not in (None, spec.port_speed_mbps):
            method = f"set{name}NetworkInterfaceSpeed"
            account.api.ensure("Virtual_Guest", method, spec.port_speed_mbps, id=int(guest["id"]))


def _imported(op: Operation, account: Account, guest: Thing) -> dict[str, Any]:
    """Read back all inputs of a guest that is this stack's."""
    marks.permit_import(op.stack, guest.label, guest.owner)
    ordered = account.api.find("Virtual_Guest", guest.id, guest_view.IMPORT_MASK) or {}
    # A guest names one of the two, and by default the program names the router.
    live = {key: value for key, value in guest.inputs.items() if key != "privateVlanId"}
    return {**live, **guest_view.ordered_inputs({**guest.row, **ordered}), "mark": guest.owner.mark}


def _drifted(guest: Thing, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs with what somebody changed; the order of tags and groups means nothing."""
    found = {key: value for key, value in guest.inputs.items() if key in inputs}
    for key in CHANGED_LATER:
        if set(found.get(key) or ()) == set(inputs.get(key) or ()):
            found.pop(key, None)
    tags, notes = guest_view.tags(guest.row), str(guest.row.get("notes") or "")
    if tags != set(inputs.get("tags") or ()):
        found["tags"] = sorted(tags)
    if notes != _notes(str(inputs["domain"]), str(inputs["hostname"])):
        # Notes are no input of ours: one that turns up in the state shows as a change, which the next update takes back.
        found["notes"] = notes
    return {**inputs, **found}
