"""The Ledger resource: the account is checked before the first order and proven clean after the last deletion."""

from collections.abc import Mapping
from typing import Any, Literal

import pydantic

from core.catalog import paperspace as catalog
from providers.grpc.properties import Problem, other_mark, problems
from providers.grpc.resource_protocol import Created, Live
from providers.paperspace import offers
from providers.paperspace.account import MACHINES, Account
from providers.paperspace.machine_spec import InRegion, ObjectId, sold
from providers.rental import sweep
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.owner_mark import Owner
from providers.rental.receipt import as_lines

REPLACE_ON: frozenset[str] = frozenset()
"""Never replaced: it is the first resource of a stack and the last to go."""
TIMEOUT_S = 90 * 60.0
PRICE_SOURCE = f"the vendor's price list of {catalog.AS_OF}, as the API shows no price"
OUTPUTS = ("accountId", "endpoint", "username", "pricePerHour", "priceSource", "perMonth", "currency")


class LedgerSpec(InRegion):
    """The cluster to come."""

    stack: str
    machine_type: str
    template_id: ObjectId
    nodes: int = pydantic.Field(ge=1, le=64)
    disk_gb: int
    public_ip_type: Literal["static", "dynamic", "none"] = "dynamic"
    drive_gb: int | None = None

    @pydantic.model_validator(mode="after")
    def _priced(self) -> "LedgerSpec":
        sold("machine type", self.machine_type, catalog.MACHINE_TYPES)
        sold("disk size", self.disk_gb, catalog.DISKS)
        if self.drive_gb is not None:
            sold("drive size", self.drive_gb, catalog.DRIVES)
        return self


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return other_mark(inputs, old_inputs) or problems(LedgerSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Price the cluster, which needs no account."""
    kept = {key: old[key] for key in ("accountId", "endpoint", "username") if key in old}
    return kept if problems(LedgerSpec, inputs) else {**kept, **_price(LedgerSpec.of(inputs))}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Check the key, the offer and the room; order nothing."""
    spec = LedgerSpec.of(inputs)
    return Created(str(Owner(spec.stack, spec.mark)), _checked(op, op.backend().account, spec))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Prove that the key still belongs to the recorded account; nothing else of a ledger can drift."""
    if not inputs:
        raise ProviderError(f"importing ledger {resource_id}: a ledger is made by 'pulumi up' and never imported.")
    op.backend(old.get("accountId"))
    return Live(dict(inputs), {key: old.get(key) for key in OUTPUTS})


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Check the cluster anew."""
    return _checked(op, op.backend(old.get("accountId")).account, LedgerSpec.of(inputs))


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Delete what still bears the mark, prove that nothing but what is kept is billed, and write the receipt."""
    owner = Owner(str(inputs.get("stack") or op.stack), str(inputs["mark"]))
    found = sweep.clean(op, op.backend(old.get("accountId")), owner)
    op.log.info(as_lines(found, owner.mark))


def _checked(op: Operation, account: Account, spec: LedgerSpec) -> dict[str, Any]:
    identity = account.identity()
    account.check_sees_all(f"checking the account for {spec.stack}")
    owner = Owner(spec.stack, spec.mark)
    missing = spec.nodes - len(account.under(MACHINES, owner))
    if missing > 0:
        offers.check_template(account, spec.template_id, spec.machine_type)
        offers.check_room(account, spec.stack, spec.machine_type, spec.region)
        _check_limit(account, spec, missing)
    where = {"accountId": identity.account_id, "endpoint": identity.endpoint, "username": identity.username}
    return {**where, **_price(spec)}


def _check_limit(account: Account, spec: LedgerSpec, missing: int) -> None:
    """Refuse where the team's own limit would leave a part of the cluster unordered."""
    limit = account.session()["team"].get("maxMachines")
    present = len(account.api.list(MACHINES))
    if isinstance(limit, int | float) and not isinstance(limit, bool) and present + missing > limit:
        raise ProviderError(
            f"checking the account for {spec.stack}: its team may have {limit:g} machines, it has {present}, and {missing} more "
            "are to be ordered. Nothing was ordered. Ask the vendor for a higher limit, or delete machines that nobody needs."
        )


def _price(spec: LedgerSpec) -> dict[str, Any]:
    cluster = catalog.Cluster(spec.machine_type, spec.nodes, spec.disk_gb, spec.public_ip_type, spec.drive_gb)
    return {
        "pricePerHour": f"{catalog.price_per_hour(cluster):f}",
        "priceSource": PRICE_SOURCE,
        "perMonth": f"{catalog.limit_per_month(cluster):f}",
        "currency": catalog.CURRENCY,
    }
