"""The Vlan resource: an ordered VLAN, which stays when no guest is on it, and costs until it is deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.softlayer import accepted, closing, goods, vlan_order, vlans
from providers.softlayer import mark as marks
from providers.softlayer.account import Account
from providers.softlayer.calls import Api
from providers.softlayer.closing import Ending, Tell
from providers.softlayer.errors import ProviderError, Unfinished
from providers.softlayer.resource import Created, Live
from providers.softlayer.session import Operation
from providers.softlayer.spec import Problem, problems
from providers.softlayer.vlan_spec import VlanSpec
from providers.softlayer.vlans import VLANS, Vlan
from providers.softlayer.waiting import Patience, Pending, wait_until

REPLACE_ON = frozenset({"mark", "datacenter", "space", "routerId", "hourly"})
TIMEOUT_S = 60 * 60.0
"""A cancelled guest stays on its VLAN until its reclaim is over: half an hour and more."""
MONTHLY = "It will be billed monthly, at least one whole month. 'hourly: true', the default, bills it by the hour."


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return problems(VlanSpec, inputs)


def caution(inputs: Mapping[str, Any]) -> str | None:
    """Warn of the month that a monthly VLAN costs at least."""
    return MONTHLY if inputs.get("hourly") is False else None


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Tell what stays."""
    if old:
        return {key: old.get(key) for key in vlans.OUTPUTS}
    return {"routerId": inputs["routerId"]} if inputs.get("routerId") else {}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Adopt the VLAN that an interrupted run ordered, else order it."""
    spec = VlanSpec.of(inputs)
    account = op.account()
    outputs = _finish(op, account, spec, vlan_order.adopt_or_order(op, account, spec), None)
    return Created(outputs["vlanId"], outputs)


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Read the VLAN; one that is not billed any more is gone."""
    account = op.account(old.get("accountId"))
    vlan = VLANS.located(account.api, resource_id, old.get("orderId"))
    if vlan is None:
        return accepted.gone(op, VLANS, resource_id, inputs, old)
    if vlans.is_automatic(vlan):
        if inputs:
            return None
        raise ProviderError(
            f"importing VLAN {resource_id}: it is automatic. It came with the first guest behind its router, costs nothing and "
            "goes with the last one, so that nobody can keep or cancel it. Name it in privateVlanId, or order one of your own."
        )
    outputs = vlans.outputs(vlan, account.identity().account_id, old.get("orderId"))
    return Live(_live_inputs(op, vlan, inputs), outputs)


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Go on with a VLAN that was not shown yet, and bring name and tags up to date."""
    return _finish(op, op.account(old.get("accountId")), VlanSpec.of(inputs), resource_id, old.get("orderId"))


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Cancel the VLAN at once and return when the account shows that it is billed no more."""
    account = op.account(old.get("accountId"))
    owner_mark, order = str(inputs.get("mark") or old.get("mark")), old.get("orderId")
    close(account, resource_id, owner_mark, op.patience, op.log.progress, order=order)
    accepted.closed(op, account, owner_mark, VLANS.kind, (resource_id, order))


def close(
    account: Account, vlan_id: str, owner_mark: str, patience: Patience, tell: Tell, *, order: str | None = None
) -> None:
    """Cancel a VLAN that bears the mark, or that the order made; anything else is left alone.

    Raises:
        ProviderError: guests that are not cancelled are on it, or it is still billed.
    """

    def obstacle(vlan: Vlan) -> str | None:
        living = vlans.inhabitants(vlan)
        if living:
            raise ProviderError(
                f"cancelling VLAN {vlan['id']}: guests are on it: {', '.join(living)}. Nothing was touched; cancel these first."
            )
        reasons = account.api.read("Network_Vlan", "getCancelFailureReasons", id=int(vlan["id"]))
        return f"still in use while cancelled guests are reclaimed ({' '.join(map(str, reasons))})" if reasons else None

    closing.close(account, Ending(VLANS, vlan_id, owner_mark, order, obstacle), patience, tell)


def marked(api: Api, owner_mark: str) -> list[dict[str, Any]]:
    """List the VLANs that bear the mark; those without billing item are not billed any more."""
    return VLANS.marked(api, owner_mark)


def _finish(op: Operation, account: Account, spec: VlanSpec, resource_id: str, order: str | None) -> dict[str, Any]:
    """From here on the VLAN costs money, so that whatever happens its id reaches the state."""
    known = {"accountId": account.identity().account_id, "orderId": goods.order_of_id(resource_id) or order}

    def look() -> Vlan | Pending:
        vlan = VLANS.located(account.api, resource_id, known["orderId"])
        if vlan is None:
            return Pending("not in the account's lists yet")
        known.update(vlans.outputs(vlan, known["accountId"], known["orderId"]))
        if vlans.is_automatic(vlan):
            raise ProviderError("it was cancelled by somebody else. Run 'pulumi up --refresh'.")
        return vlan

    try:
        _label(op, account, spec, wait_until(f"VLAN {spec.name} shown", look, op.patience, op.log.progress))
    except Exception as error:  # noqa: BLE001  # Whatever it is.
        known_id = str(known.get("vlanId") or resource_id)
        reason = f"VLAN {known_id} ({spec.name}) is ordered, but not ready: {op.sentence(error)}"
        raise Unfinished(known_id, known, reason) from error
    return known


def _label(op: Operation, account: Account, spec: VlanSpec, vlan: Vlan) -> None:
    """Give it its name, should it have lost it, and the tags that say the stack."""
    if vlan.get("name") != spec.account_name:
        account.api.ensure("Network_Vlan", "editObject", {"name": spec.account_name}, id=int(vlan["id"]))
    wanted = marks.owner_tags(op.stack, spec.mark)
    if not vlans.tags(vlan) >= set(wanted):
        together = ",".join(sorted(vlans.tags(vlan) | set(wanted)))
        account.api.ensure("Network_Vlan", "setTags", together, id=int(vlan["id"]))


def _live_inputs(op: Operation, vlan: Vlan, inputs: Mapping[str, Any]) -> dict[str, Any]:
    name, hourly = str(vlan.get("name") or ""), bool(vlan["billingItem"].get("hourlyFlag"))
    live = {"datacenter": vlans.datacenter(vlan), "space": vlan.get("networkSpace"), "routerId": vlans.router_id(vlan)}
    if inputs:
        known = {key: value for key, value in live.items() if key in inputs}
        spec = VlanSpec.of(inputs)
        changed = {} if hourly == spec.hourly else {"hourly": hourly}
        return {**inputs, **known, "name": vlans.short_name(vlan, spec.mark), **changed}
    owner = vlans.owner(vlan)
    if owner is None or owner.stack != op.stack:
        raise ProviderError(f"importing VLAN {vlan['id']} ('{name}'): it does not carry the mark of stack {op.stack}.")
    live.pop("routerId")
    return {**live, "mark": owner.mark, "name": vlans.short_name(vlan, owner.mark), "hourly": hourly}
