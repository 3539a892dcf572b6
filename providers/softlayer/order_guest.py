"""What a guest's order is requested with, and whether a guest that an interrupted run ordered may be adopted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.grpc.spec import difference
from providers.rental import idempotent_order
from providers.rental import owner_mark as marks
from providers.rental.backend import Backend, OrderRequest, Thing
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.softlayer import guest_view, order_template, userdata
from providers.softlayer.account import Account
from providers.softlayer.guest_spec import GuestSpec

KIND = "VirtualGuest"
CHANGED_LATER = ("publicSecurityGroupIds", "privateSecurityGroupIds")
"""What is put right after the adoption, as in any update."""


def adopt_or_order(op: Operation, backend: Backend, account: Account, spec: GuestSpec) -> tuple[str, str]:
    """Return the guest's id and the public part of its host key."""
    key = userdata.make_host_key()
    data = userdata.cloud_config(key, marks.owner_of(spec.domain), spec.hostname)
    request = OrderRequest(
        KIND,
        spec.owner,
        order_template.full_name(spec),
        spec.hostname,
        (spec, data),
        hostname=spec.hostname,
        key_ids=spec.ssh_key_ids,
    )
    made = idempotent_order.adopt_or_order(op, backend, request)
    return (made, key.public) if isinstance(made, str) else _adopt(op, account, spec, made)


def host_key(account: Account, guest_id: str) -> str | None:
    """Derive the public host key from the user data that the guest was ordered with."""
    guest = account.api.find("Virtual_Guest", guest_id, "mask[id,userData[value]]") or {}
    values = [str(each.get("value") or "") for each in guest.get("userData") or []]
    return next((key for key in map(userdata.public_part, values) if key), None)


def _adopt(op: Operation, account: Account, spec: GuestSpec, guest: Thing) -> tuple[str, str]:
    key = host_key(account, guest.id)
    differing = _differing(spec, guest.row) + ([] if key else ["its user data holds no host key"])
    differing += ["it is billed by the month"] if guest.row.get("hourlyBillingFlag") is False else []
    if differing or key is None:
        raise ProviderError(
            f"adopting {guest.label}, which an earlier run ordered: {'; '.join(differing)}. Nothing was "
            "touched. Put the stack file back as it was, or cancel that guest, and run the command again."
        )
    op.log.info(f"Goes on with {guest.label}, whose order was accepted before.")
    return guest.id, key


def _differing(spec: GuestSpec, guest: Mapping[str, Any]) -> list[str]:
    wanted = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    live = guest_view.live_inputs(guest)
    if not guest.get("provisionDate"):
        live.pop("dataDisksGb", None)  # Disks appear one by one while the guest is built.
    for later in CHANGED_LATER:
        live.pop(later, None)
    keys = difference({key: wanted[key] for key in live if key in wanted}, live, ()).changed
    return [f"{key} is {live[key]} there and {wanted[key]} here" for key in keys if key in wanted]
