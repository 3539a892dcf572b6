"""The VirtualGuest resource: adopted or ordered once, ready when it is returned, billed by nobody when it is deleted."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from microcluster import catalog
from providers.grpc.resource_protocol import Created, Live
from providers.grpc.spec import Problem, difference, problems
from providers.grpc.values import has_unknown
from providers.rental import closing, idempotent_order, import_guard
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend
from providers.rental.errors import PartialFailure, ProviderError, WaitError
from providers.rental.operation import Operation
from providers.rental.waiting import Pending, wait_until
from providers.softlayer import (
    disk_upgrade,
    guest_view,
    order_guest,
    rights,
    security_group_attachment,
)
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError
from providers.softlayer.guest_readiness import Building, GoneError
from providers.softlayer.guest_spec import GuestSpec

REPLACE_ON = frozenset(
    {"mark", "hostname", "domain", "datacenter", "flavor", "os", "imageId"}
    | {"backendRouterId", "privateVlanId", "sshKeyIds"}
)
TIMEOUT_S = 90 * 60.0
"""GPU guests with large images take some 20 minutes; the vendor's own tools allow 90."""


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs; disks of a guest that stays may only be added and grow."""
    found = problems(GuestSpec, inputs)
    changed = difference(old_inputs, inputs, REPLACE_ON)
    old_gb, new_gb = old_inputs.get("dataDisksGb") or [], inputs.get("dataDisksGb") or []
    if found or not old_inputs or changed.replacing or has_unknown(new_gb):
        return found
    if disk_upgrade.is_shrinking(old_gb, new_gb):
        sentence = (
            f"cannot shrink from {old_gb} to {new_gb}: the service only adds and grows disks. Replace the guest instead"
        )
        return [Problem("dataDisksGb", sentence)]
    return []


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Price a new guest by the catalog; a living one keeps what it has."""
    if old:
        return {key: old.get(key) for key in guest_view.OUTPUTS}
    price = _catalog_price(inputs)
    return {"pricePerHour": price} if price else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the guest that an interrupted run ordered, else order it; return it ready."""
    spec, backend = GuestSpec.of(inputs), op.backend()
    guest_id, host_key = order_guest.adopt_or_order(op, backend, backend.account, spec)
    return Created(guest_id, _finish(op, backend, spec, guest_id, host_key))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the guest; a cancelled one is gone, one that is not ready is a partial failure."""
    backend = op.backend(old.get("accountId"))
    account, owner = backend.account, _owner(op, inputs)
    try:
        guest = _known(op, backend, owner, resource_id)
    except WaitError as error:
        raise PartialFailure(resource_id, dict(old), str(error), dict(inputs)) from error
    if guest is not None:
        rights.check_cancelled(account, guest)
    if guest is None or guest_view.is_cancelled(guest):
        return None
    if inputs:
        closing.check_ours(guest_view.thing(guest), owner, "reading")
    live = _inputs_of(op, guest, inputs)
    host_key = old.get("hostKey") or order_guest.host_key(account, resource_id)
    outputs = guest_view.outputs(guest, host_key, account.identity().account_id)
    building = Building(account, marks.owner_in_domain(guest["domain"]) or owner, resource_id, op.deadline.time_scale)
    try:
        state = building.assess(guest)
    except ProviderError as error:
        raise PartialFailure(resource_id, outputs, str(error), live) from error
    if isinstance(state, Pending):
        raise PartialFailure(resource_id, outputs, f"{guest_view.described(guest)} is not ready: {state.detail}.", live)
    return Live(live, outputs)


def _owner(op: Operation, inputs: Mapping[str, Any]) -> marks.Owner:
    """Read from the inputs whose guest it is; in an import there are none."""
    return marks.owner_in_domain(inputs.get("domain")) or marks.Owner(op.stack, str(inputs.get("mark") or ""))


def _known(op: Operation, backend: Backend, owner: marks.Owner, guest_id: str) -> dict[str, Any] | None:
    """Look until it is certain whether the guest exists: forgetting one that was ordered only now would order it twice."""
    fresh_until = _fresh_until(op, backend, owner.mark, guest_id)

    def look() -> tuple[dict[str, Any] | None] | Pending:
        seen = backend.find(order_guest.KIND, guest_id, owner, fresh=time.monotonic() < fresh_until)
        return seen if isinstance(seen, Pending) else (seen.row if seen else None,)

    deadline = op.deadline.within(2 * idempotent_order.settled_s(backend))
    (guest,) = wait_until(f"certainty about guest {guest_id}", look, deadline, op.log.progress)
    return guest


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with a guest that was not ready, and change in place what can be changed in place."""
    spec = GuestSpec.of(inputs)
    backend = op.backend(old.get("accountId"))
    host_key = old.get("hostKey") or order_guest.host_key(backend.account, resource_id)
    return _finish(op, backend, spec, resource_id, host_key)


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Cancel the guest and return when the account shows that it is billed no more."""
    backend, owner = op.backend(old.get("accountId")), _owner(op, inputs)
    fresh_until = _fresh_until(op, backend, owner.mark, resource_id)
    closing.close(backend, resource_id, owner, op.deadline, op.log.progress, fresh_until=fresh_until)
    op.journal(owner.mark).closed(backend.identity().account_id, order_guest.KIND, resource_id)


def _fresh_until(op: Operation, backend: Backend, owner_mark: str, guest_id: str) -> float:
    return idempotent_order.fresh_until(op, backend, owner_mark, order_guest.KIND, guest_id) if owner_mark else 0.0


def _finish(op: Operation, backend: Backend, spec: GuestSpec, guest_id: str, host_key: str | None) -> dict[str, Any]:
    """From here on the guest costs money, so that whatever happens its id reaches the state."""
    account: Account = backend.account
    known: dict[str, Any] = {"guestId": guest_id, "hostKey": host_key, "accountId": account.identity().account_id}
    building = Building(account, spec.owner, guest_id, op.deadline.time_scale)
    try:
        building.fresh_until = _fresh_until(op, backend, spec.mark, guest_id)
        _label(account, spec, building.read())
        ready = wait_until(f"guest {guest_id} ({spec.hostname}) ready", building.look, op.deadline, op.log.progress)
        _set_port_speed(account, spec, ready)
        ready = security_group_attachment.settle(op, account, ready, spec)
        _label(account, spec, ready)
        building.guest = disk_upgrade.grow_disks(op, backend, spec.owner, ready, spec.data_disks_gb)
    except GoneError as error:
        raise PartialFailure(guest_id, known, f"guest {guest_id} ({spec.hostname}): {error}") from error
    except Exception as error:  # noqa: BLE001  # Whatever it is.
        reason = f"guest {guest_id} ({spec.hostname}) is {_standing(building.guest)}: {op.sentence(error)}"
        raise PartialFailure(guest_id, known | _shown(building.guest, known), reason) from error
    return known | _shown(building.guest, known)


def _shown(guest: guest_view.Guest | None, known: Mapping[str, Any]) -> dict[str, Any]:
    return guest_view.outputs(guest, known["hostKey"], known["accountId"]) if guest else {}


def _standing(guest: guest_view.Guest | None) -> str:
    return (
        "ordered, and not billed before it is approved"
        if guest and not guest_view.is_billed(guest)
        else "ordered and billed"
    )


def _label(account: Account, spec: GuestSpec, guest: guest_view.Guest | None) -> None:
    """Give the guest its tags and notes as soon as it is shown; one that is still too fresh gets them when it is ready."""
    if guest is None or guest_view.is_cancelled(guest):
        return
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


def _inputs_of(op: Operation, guest: dict[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    live = guest_view.live_inputs(guest)
    if inputs:
        return {**inputs, **_drift(guest, live, inputs)}
    owner = marks.owner_in_domain(guest.get("domain"))
    import_guard.permit(op, guest_view.described(guest), owner)
    ordered = op.backend().account.api.find("Virtual_Guest", str(guest["id"]), guest_view.IMPORT_MASK) or {}
    live.pop("privateVlanId", None)  # A guest names one of the two, and by default the program names the router.
    return {**live, **guest_view.ordered_inputs({**guest, **ordered}), "mark": owner.mark if owner else ""}


def _drift(guest: dict[str, Any], live: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what somebody changed; the order of tags and groups means nothing."""
    found = {key: value for key, value in live.items() if key in inputs}
    for key in ("publicSecurityGroupIds", "privateSecurityGroupIds"):
        if set(found.get(key) or ()) == set(inputs.get(key) or ()):
            found.pop(key, None)
    if guest_view.tags(guest) != set(inputs.get("tags") or ()):
        found["tags"] = sorted(guest_view.tags(guest))
    if guest.get("notes") != _notes(str(inputs["domain"]), str(inputs["hostname"])):
        # Notes are no input of ours: one that turns up in the state shows as a change, which the next update takes back.
        found["notes"] = str(guest.get("notes") or "")
    return found


def _catalog_price(inputs: Mapping[str, Any]) -> str | None:
    try:
        disks = tuple(int(size) for size in inputs.get("dataDisksGb") or ())
        price = catalog.price_per_hour(str(inputs["flavor"]), disks, int(inputs["portSpeedMbps"]))
    except (KeyError, TypeError, ValueError):
        return None
    return None if price is None else f"{price:f}"
