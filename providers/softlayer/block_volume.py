"""The BlockVolume resource: storage that outlives the guests it is lent to, billed until it is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from providers.softlayer import accepted, closing, goods, volume_access, volume_provision, volumes
from providers.softlayer import mark as marks
from providers.softlayer.account import Account
from providers.softlayer.calls import Api
from providers.softlayer.closing import Ending, Tell
from providers.softlayer.errors import ProviderError, Unfinished
from providers.softlayer.resource import Created, Live
from providers.softlayer.session import Operation
from providers.softlayer.spec import Problem, problems
from providers.softlayer.values import has_unknown
from providers.softlayer.volume_spec import VolumeSpec, estimate
from providers.softlayer.volumes import VOLUMES, Volume
from providers.softlayer.waiting import Patience, Pending, wait_until

REPLACE_ON = frozenset({"mark", "name", "datacenter", "sizeGb", "iopsPerGb", "iops", "hourly"})
TIMEOUT_S = 45 * 60.0

Outputs = dict[str, Any]


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(VolumeSpec, inputs)


def caution(inputs: Mapping[str, Any]) -> str | None:
    """Warn of the month that a new volume costs at least, unless it is hourly."""
    if has_unknown(inputs.get("hourly")) or inputs.get("hourly"):
        return None
    return f"It will be billed {_estimated(inputs) or 'monthly, at least one whole month'}. 'hourly: true' bills it by the hour."


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Outputs:
    """Say how a new volume will be billed; a living one keeps what it has."""
    if old:
        return {key: old.get(key) for key in volumes.OUTPUTS}
    billing = _estimated(inputs)
    return {"billing": billing} if billing else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the volume that an interrupted run ordered, else order it; return it ready, with its guests authorised."""
    spec = VolumeSpec.of(inputs)
    account = op.account()
    outputs = _finish(op, account, spec, volume_provision.adopt_or_order(op, account, spec), None)
    return Created(outputs["volumeId"], outputs)


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the volume; one that is not billed any more is gone, one that is not ready is a partial failure."""
    account = op.account(old.get("accountId"))
    volume = VOLUMES.located(account.api, resource_id, old.get("orderId"))
    if volume is None:
        return accepted.gone(op, VOLUMES, resource_id, inputs, old)
    if not goods.is_billed(volume):
        return None
    live = _live_inputs(op, volume, inputs)
    outputs = volumes.outputs(volume, account.identity().account_id, old.get("orderId"))
    if outputs["ends"]:
        op.log.warn(f"{volumes.described(volume)} is cancelled and ends on {outputs['ends']}; until then it is billed.")
    state = volumes.readiness(volume)
    if isinstance(state, Pending):
        raise Unfinished(resource_id, outputs, f"{volumes.described(volume)} is not ready: {state.detail}.", live)
    return Live(live, outputs)


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Outputs:
    """Go on with a volume that was not ready, and bring notes and authorised guests up to date."""
    return _finish(op, op.account(old.get("accountId")), VolumeSpec.of(inputs), resource_id, old.get("orderId"))


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Cancel the volume at once and return when the account shows that it is billed no more."""
    account = op.account(old.get("accountId"))
    owner_mark, order = str(inputs.get("mark") or old.get("mark")), old.get("orderId")
    close(account, resource_id, owner_mark, op.patience, op.log.progress, order=order)
    accepted.closed(op, account, owner_mark, VOLUMES.kind, (resource_id, order))


def close(
    account: Account, volume_id: str, owner_mark: str, patience: Patience, tell: Tell, *, order: str | None = None
) -> None:
    """Cancel a volume that bears the mark, or that the order made; anything else is left alone."""
    withdraw = partial(volume_access.withdraw, account)
    closing.close(account, Ending(VOLUMES, volume_id, owner_mark, order, withdraw), patience, tell)


def marked(api: Api, owner_mark: str) -> list[dict[str, Any]]:
    """List the volumes that bear the mark; those without billing item are not billed any more."""
    return VOLUMES.marked(api, owner_mark)


def _finish(op: Operation, account: Account, spec: VolumeSpec, resource_id: str, order: str | None) -> Outputs:
    """From here on the volume costs money, so that whatever happens its id reaches the state."""
    known: Outputs = {"accountId": account.identity().account_id, "orderId": goods.order_of_id(resource_id) or order}

    def look() -> Volume | Pending:
        volume = VOLUMES.located(account.api, resource_id, known["orderId"])
        if volume is None:
            return Pending("not in the account's lists yet")
        known.update(volumes.outputs(volume, known["accountId"], known["orderId"]))
        if not goods.is_billed(volume):
            raise ProviderError(
                f"{volumes.described(volume)} was cancelled by somebody else. Run 'pulumi up --refresh'."
            )
        _label(op, account, spec, volume)
        return volumes.readiness(volume)

    def there() -> Volume:
        return wait_until(f"volume {spec.name} ready", look, op.patience, op.log.progress)

    try:
        there()
        volume_access.settle(account, there, spec.guest_ids, op.patience, op.log.progress)
    except Exception as error:  # noqa: BLE001  # Whatever it is.
        known_id = str(known.get("volumeId") or resource_id)
        reason = f"volume {known_id} ({spec.name}) is ordered, but not ready: {op.sentence(error)}"
        raise Unfinished(known_id, known, reason) from error
    return known


def _label(op: Operation, account: Account, spec: VolumeSpec, volume: Volume) -> None:
    """Give it our mark as soon as it is seen: until then only the journal knows whose it is."""
    notes = spec.notes(op.stack)
    if volume.get("notes") != notes:
        account.api.ensure("Network_Storage", "editObject", {"notes": notes}, id=int(volume["id"]))


def _live_inputs(op: Operation, volume: Volume, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what the account shows; notes without our mark show as a description that is not ours."""
    live = {key: value for key, value in volumes.live_inputs(volume).items() if not inputs or key in inputs}
    head, _, description = str(volume.get("notes") or "").partition("; ")
    if not inputs:
        stack, _, owner_mark = head.partition(": ")[0].removeprefix(f"{marks.ZONE} ").rpartition("-")
        if stack != op.stack or not marks.notes_are(head, owner_mark):
            raise ProviderError(
                f"importing {volumes.described(volume)}: it does not carry the mark of stack {op.stack}."
            )
        said = {"description": description} if description else {}
        guests = sorted(volumes.guest_ids(volume))
        return {**live, "mark": owner_mark, "name": volumes.name_of(volume), "guestIds": guests, **said}
    spec = VolumeSpec.of(inputs)
    if volume.get("notes") != spec.notes(op.stack):
        live["description"] = (
            description if head == spec.notes(op.stack).partition("; ")[0] else str(volume.get("notes"))
        )
    if volumes.guest_ids(volume) != set(spec.guest_ids):
        live["guestIds"] = sorted(volumes.guest_ids(volume))
    if "hourly" not in inputs and volumes.live_inputs(volume)["hourly"]:
        live["hourly"] = True
    return {**inputs, **live}


def _estimated(inputs: Mapping[str, Any]) -> str | None:
    """Say what it will cost, as far as its inputs are known."""
    asked = ("mark", "name", "datacenter", "sizeGb", "iopsPerGb", "iops", "hourly")
    known = {key: inputs[key] for key in asked if key in inputs}
    return None if has_unknown(known) or problems(VolumeSpec, known) else estimate(VolumeSpec.of(known))
