"""Getting a guest: the living one that an interrupted run ordered, else a new order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from providers.grpc.spec import difference
from providers.rental import owner_mark as marks
from providers.rental.errors import ProviderError
from providers.rental.journal import Intent
from providers.rental.operation import Operation
from providers.rental.waiting import Pending
from providers.softlayer import guest_view, idempotent_order, order_template, rights, userdata
from providers.softlayer.account import Account
from providers.softlayer.cached_lists import GUEST_MASK
from providers.softlayer.guest_lookup import sight
from providers.softlayer.guest_spec import GuestSpec

LIST_AGE_S = 60.0
"""The list that was read for this look is young enough."""
KIND = "VirtualGuest"
CHANGED_LATER = ("publicSecurityGroupIds", "privateSecurityGroupIds")
"""What is put right after the adoption, as in any update."""
ADOPTED_MASK = f"{GUEST_MASK[:-1]},userData[value]]"


def adopt_or_order(op: Operation, account: Account, spec: GuestSpec) -> tuple[str, str]:
    """Return the guest's id and the public part of its host key."""
    key = userdata.make_host_key()
    data = userdata.cloud_config(key, marks.owner_of(spec.domain), spec.hostname)

    def prepare() -> tuple[order_template.Template, Callable[[], str]]:
        prepared = order_template.prepared(account.api, spec, data)
        op.log.progress("ordering")
        return prepared.content, partial(order_template.send, account.api, prepared)

    def look() -> dict[str, Any] | Pending | None:
        return _living(op, account, spec)

    wanted = idempotent_order.Wanted(
        order_template.full_name(spec),
        spec.mark,
        KIND,
        look,
        prepare,
        spec.hostname,
        advice=partial(order_template.where_else, op.stack, spec),
        key_ids=spec.ssh_key_ids,
    )
    made = idempotent_order.obtain(op, account, wanted)
    return (made, key.public) if isinstance(made, str) else _adopt(op, account, spec, made)


def host_key(account: Account, guest_id: str) -> str | None:
    """Derive the public host key from the user data that the guest was ordered with."""
    return _public_key(account.api.find("Virtual_Guest", guest_id, "mask[id,userData[value]]") or {})


def _living(op: Operation, account: Account, spec: GuestSpec) -> dict[str, Any] | Pending | None:
    """Return the living guest of this name, with its user data.

    Lists lag behind orders and cancellations: who may live is known from the list and the journal, who does from itself.
    """
    seen = _seen(op, account, spec)
    for each in account.guest_list.under(spec.owner, LIST_AGE_S):
        if each.get("hostname") == spec.hostname:
            rights.check_cancelled(account, each)
    named = [
        each
        for each in seen
        if isinstance(each, dict) and marks.guest_is(each, spec.owner, spec.hostname) and guest_view.is_alive(each)
    ]
    if len(named) > 1:
        raise ProviderError(
            f"ordering {order_template.full_name(spec)}: the account has several living guests of this name and mark: "
            f"{', '.join(guest_view.described(each) for each in named)}. Nothing was touched; cancel the ones that are too many."
        )
    uncertain = [each for each in seen if isinstance(each, Pending)]
    return next(iter([*named, *uncertain]), None)


def _seen(op: Operation, account: Account, spec: GuestSpec) -> list[dict[str, Any] | Pending]:
    """Read all that may be this guest; whose end the account proves stands in the journal as closed from then on."""
    found = {}
    accepted = op.journal(spec.mark).accepted(account.identity().account_id, KIND)
    settled = set(accepted) - set(idempotent_order.fresh(op, account, spec.mark, KIND))
    for each in _candidates(account, spec, accepted):
        found[each] = sight(account, spec.owner, each, partial(settled.isdisjoint, [each]), ADOPTED_MASK)
        if found[each] is None:
            op.journal(spec.mark).closed(account.identity().account_id, KIND, each)
    return [each for each in found.values() if each is not None]


def _candidates(account: Account, spec: GuestSpec, accepted: Mapping[str, Intent]) -> list[str]:
    listed = account.guest_list.under(spec.owner)
    named = [
        str(each["id"])
        for each in listed
        if marks.guest_is(each, spec.owner, spec.hostname) and guest_view.is_alive(each)
    ]
    return sorted({*named, *(each for each, intent in accepted.items() if intent.hostname == spec.hostname)})


def _adopt(op: Operation, account: Account, spec: GuestSpec, guest: Mapping[str, Any]) -> tuple[str, str]:
    key = _public_key(guest)
    differing = _differing(spec, guest) + ([] if key else ["its user data holds no host key"])
    differing += ["it is billed by the month"] if guest.get("hourlyBillingFlag") is False else []
    if differing or key is None:
        raise ProviderError(
            f"adopting {guest_view.described(guest)}, which an earlier run ordered: {'; '.join(differing)}. Nothing was "
            "touched. Put the stack file back as it was, or cancel that guest, and run the command again."
        )
    op.log.info(f"Goes on with {guest_view.described(guest)}, whose order was accepted before.")
    return str(guest["id"]), key


def _public_key(guest: Mapping[str, Any]) -> str | None:
    values = [str(each.get("value") or "") for each in guest.get("userData") or []]
    return next((key for key in map(userdata.public_part, values) if key), None)


def _differing(spec: GuestSpec, guest: Mapping[str, Any]) -> list[str]:
    wanted = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    live = guest_view.live_inputs(guest)
    if not guest.get("provisionDate"):
        live.pop("dataDisksGb", None)  # Disks appear one by one while the guest is built.
    for later in CHANGED_LATER:
        live.pop(later, None)
    keys = difference({key: wanted[key] for key in live if key in wanted}, live, ()).changed
    return [f"{key} is {live[key]} there and {wanted[key]} here" for key in keys if key in wanted]
