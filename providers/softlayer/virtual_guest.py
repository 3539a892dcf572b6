"""The VirtualGuest resource: adopted or ordered once, ready when it is returned, billed by nobody when it is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Self

import pydantic

import catalog
from providers.softlayer import cancel, guests, order, upgrade, userdata
from providers.softlayer import mark as marks
from providers.softlayer.account import Account
from providers.softlayer.errors import ApiError, ProviderError, Unfinished
from providers.softlayer.listing import GUEST_MASK
from providers.softlayer.resource import Created, Live
from providers.softlayer.session import Operation
from providers.softlayer.spec import MARK_PATTERN, Problem, Spec, difference, problems
from providers.softlayer.values import has_unknown
from providers.softlayer.waiting import Pending, wait_until

REPLACE_ON = frozenset(
    {"mark", "hostname", "domain", "datacenter", "flavor", "os", "imageId", "backendRouterId"}
    | {"sshKeyIds", "publicSecurityGroupIds", "privateSecurityGroupIds"}
)
TIMEOUT_S = 90 * 60.0
"""GPU guests with large images take some 20 minutes; the vendor's own tools allow 90."""

_Name = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$", max_length=63)]
_Id = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9]+$")]


class GuestSpec(Spec):
    """What is ordered."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    hostname: _Name
    domain: str
    datacenter: str
    flavor: str
    os: str | None = None
    image_id: _Id | None = None
    data_disks_gb: tuple[int, ...] = pydantic.Field((), max_length=catalog.MAX_DATA_DISKS)
    port_speed_mbps: int
    backend_router_id: _Id | None = None
    ssh_key_ids: tuple[_Id, ...] = ()
    public_security_group_ids: tuple[_Id, ...] = ()
    private_security_group_ids: tuple[_Id, ...] = ()
    tags: tuple[str, ...] = ()

    @pydantic.field_validator("data_disks_gb")
    @classmethod
    def _sold(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        odd = [size for size in sizes if size not in catalog.DATA_DISK_SIZES_GB]
        if odd:
            raise ValueError(
                f"no disk of {odd[0]} GB is sold; one of {', '.join(map(str, catalog.DATA_DISK_SIZES_GB))}"
            )
        return sizes

    @pydantic.model_validator(mode="after")
    def _one_system(self) -> Self:
        if (self.os is None) == (self.image_id is None):
            raise ValueError("name either os or imageId, and not both")
        if not marks.domain_is(self.domain, self.mark):
            raise ValueError(f"the domain {self.domain} does not end in -{self.mark}.{marks.ZONE}, the owner mark")
        return self


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs; disks of a guest that stays may only be added and grow."""
    found = problems(GuestSpec, inputs)
    changed = difference(old_inputs, inputs, REPLACE_ON)
    old_gb, new_gb = old_inputs.get("dataDisksGb") or [], inputs.get("dataDisksGb") or []
    if found or not old_inputs or changed.replacing or has_unknown(new_gb):
        return found
    if upgrade.is_shrinking(old_gb, new_gb):
        sentence = (
            f"cannot shrink from {old_gb} to {new_gb}: the service only adds and grows disks. Replace the guest instead"
        )
        return [Problem("dataDisksGb", sentence)]
    return []


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Price a new guest by the catalogue; a living one keeps what it has."""
    if old:
        return {key: old.get(key) for key in guests.OUTPUTS}
    price = _catalogue_price(inputs)
    return {"pricePerHour": price} if price else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the guest that an interrupted run ordered, else order it; return it ready."""
    spec = GuestSpec.of(inputs)
    account = op.account()
    found = _living(account, spec)
    guest_id, host_key = _adopt(op, account, spec, found) if found else _order(op, account, spec)
    return Created(guest_id, _finish(op, account, spec, guest_id, host_key))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the guest; a cancelled one is gone, one that is not ready is a partial failure."""
    account = op.account(old.get("accountId"))
    guest = account.api.find("Virtual_Guest", resource_id, GUEST_MASK)
    if guest is None or not guests.is_alive(guest):
        return None
    live = _inputs_of(op, guest, inputs)
    host_key = old.get("hostKey") or _host_key(account, resource_id)
    outputs = guests.outputs(guest, host_key, account.identity().account_id)
    state = guests.readiness(guest)
    if isinstance(state, Pending):
        raise Unfinished(resource_id, outputs, f"{guests.described(guest)} is not ready: {state.detail}.", live)
    return Live(live, outputs)


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with a guest that was not ready, and change in place what can be changed in place."""
    spec = GuestSpec.of(inputs)
    account = op.account(old.get("accountId"))
    return _finish(op, account, spec, resource_id, old.get("hostKey") or _host_key(account, resource_id))


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Cancel the guest and return when the account shows that it is billed no more."""
    account = op.account(old.get("accountId"))
    cancel.close(account, resource_id, str(inputs.get("mark") or old.get("mark")), op.patience, op.log.progress)


def _living(account: Account, spec: GuestSpec) -> dict[str, Any] | None:
    listed = account.guest_list.under(spec.mark)
    named = [each for each in listed if marks.guest_is(each, spec.mark, spec.hostname) and guests.is_alive(each)]
    if len(named) > 1:
        raise ProviderError(
            f"ordering {order.full_name(spec)}: the account has several living guests of this name and mark: "
            f"{', '.join(guests.described(each) for each in named)}. Nothing was touched; cancel the ones that are too many."
        )
    return named[0] if named else None


def _adopt(op: Operation, account: Account, spec: GuestSpec, guest: dict[str, Any]) -> tuple[str, str]:
    host_key = _host_key(account, str(guest["id"]))
    differing = _differing(spec, guest) + ([] if host_key else ["its user data holds no host key"])
    if differing or host_key is None:
        raise ProviderError(
            f"adopting {guests.described(guest)}, which an earlier run ordered: {'; '.join(differing)}. Nothing was "
            "touched. Put the stack file back as it was, or cancel that guest, and run the command again."
        )
    op.log.told(f"Goes on with {guests.described(guest)}, which an earlier run ordered.")
    return str(guest["id"]), host_key


def _differing(spec: GuestSpec, guest: dict[str, Any]) -> list[str]:
    wanted = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    live = guests.live_inputs(guest)
    if not guest.get("provisionDate"):
        live.pop("dataDisksGb", None)  # Disks appear one by one while the guest is built.
    keys = difference({key: wanted[key] for key in live if key in wanted}, live, ()).changed
    return [f"{key} is {live[key]} there and {wanted[key]} here" for key in keys if key in wanted]


def _order(op: Operation, account: Account, spec: GuestSpec) -> tuple[str, str]:
    name = order.full_name(spec)
    key = userdata.make_host_key()
    data = userdata.cloud_config(key, marks.owner_of(spec.domain), spec.hostname)
    op.log.progress("ordering")
    try:
        return order.place(account.api, spec, data, lambda: op.before_order(name)), key.public
    except ApiError as error:
        if not error.is_weather:
            raise ProviderError(
                f"ordering {name}: refused: {error.text} ({error.code}). Nothing was ordered."
            ) from error
        lost = error
    # Resolved outside of the handler: the guest that is found carries the key that this order sent.
    found = order.resolve(name, lost, lambda: (_living(account, spec) or {}).get("id"), op.patience)
    return str(found), key.public


def _finish(op: Operation, account: Account, spec: GuestSpec, guest_id: str, host_key: str | None) -> dict[str, Any]:
    """From here on the guest costs money, so that whatever happens its id reaches the state."""
    known: dict[str, Any] = {"guestId": guest_id, "hostKey": host_key, "accountId": account.identity().account_id}

    def look() -> guests.Guest | Pending:
        guest = account.guest(guest_id, spec.mark)
        if guest is None:
            return Pending("not in the account's lists yet")
        known.update(guests.outputs(guest, host_key, known["accountId"]))
        if not guests.is_alive(guest) and guest.get("provisionDate"):
            raise ProviderError(f"{guests.described(guest)} was cancelled by somebody else. Run 'pulumi up --refresh'.")
        return guests.readiness(guest)

    try:
        _label(account, spec, guest_id)
        ready = wait_until(f"guest {guest_id} ({spec.hostname}) ready", look, op.patience, op.log.progress)
        _set_port_speed(account, spec, ready)
        before = partial(op.before_order, f"disks for guest {guest_id} ({spec.hostname})")
        ready = upgrade.grow_disks(account, ready, spec.data_disks_gb, op.patience, before)
        known.update(guests.outputs(ready, host_key, known["accountId"]))
    except ProviderError as error:
        raise Unfinished(
            guest_id, known, f"guest {guest_id} ({spec.hostname}) is ordered and billed: {error}"
        ) from error
    return known


def _label(account: Account, spec: GuestSpec, guest_id: str) -> None:
    guest = account.guest(guest_id, spec.mark) or {}
    notes = f"{marks.notes(marks.owner_of(spec.domain))} {spec.hostname}"
    if guests.tags(guest) != set(spec.tags):
        account.api.ensure("Virtual_Guest", "setTags", ",".join(spec.tags), id=int(guest_id))
    if guest.get("notes") != notes:
        account.api.ensure("Virtual_Guest", "editObject", {"notes": notes}, id=int(guest_id))


def _set_port_speed(account: Account, spec: GuestSpec, guest: guests.Guest) -> None:
    sides = {"primaryNetworkComponent": "Public", "primaryBackendNetworkComponent": "Private"}
    for side, name in sides.items():
        if (guest.get(side) or {}).get("maxSpeed") not in (None, spec.port_speed_mbps):
            method = f"set{name}NetworkInterfaceSpeed"
            account.api.ensure("Virtual_Guest", method, spec.port_speed_mbps, id=int(guest["id"]))


def _host_key(account: Account, guest_id: str) -> str | None:
    found = account.api.find("Virtual_Guest", guest_id, "mask[id,userData[value]]") or {}
    values = [str(each.get("value") or "") for each in found.get("userData") or []]
    return next((key for key in map(userdata.public_part, values) if key), None)


def _inputs_of(op: Operation, guest: dict[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    live = guests.live_inputs(guest)
    if inputs:
        same_tags = guests.tags(guest) == set(inputs.get("tags") or ())
        tags = {} if same_tags else {"tags": sorted(guests.tags(guest))}
        return {**inputs, **{key: value for key, value in live.items() if key in inputs}, **tags}
    stack, _, owner_mark = marks.owner_of(str(guest.get("domain"))).rpartition("-")
    if stack != op.stack:
        raise ProviderError(f"importing {guests.described(guest)}: it does not carry the mark of stack {op.stack}.")
    return {**live, "mark": owner_mark, "tags": sorted(guests.tags(guest))}


def _catalogue_price(inputs: Mapping[str, Any]) -> str | None:
    try:
        disks = tuple(int(size) for size in inputs.get("dataDisksGb") or ())
        price = catalog.price_per_hour(str(inputs["flavor"]), disks, int(inputs["portSpeedMbps"]))
    except (KeyError, TypeError, ValueError):
        return None
    return None if price is None else f"{price:f}"
