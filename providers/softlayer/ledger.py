"""The Ledger resource: the account is checked before the first order and proven clean after the last cancellation."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

import pydantic

from core.catalog import softlayer as catalog
from providers.grpc.properties import MARK_PATTERN, Problem, other_mark, problems
from providers.grpc.resource_protocol import Created, Live
from providers.rental import owner_mark as marks
from providers.rental import sweep
from providers.rental.errors import ProviderError
from providers.rental.operation import Operation
from providers.rental.receipt import as_lines
from providers.softlayer import guest_order, guest_view, routers
from providers.softlayer.account import Account, check_to_order
from providers.softlayer.errors import ApiError
from providers.softlayer.guest_order import GuestSpec, Hardware

REPLACE_ON: frozenset[str] = frozenset()
"""Never replaced: it is the first resource of a stack and the last to go."""
TIMEOUT_S = 90 * 60.0
USUAL_INSTANCE_LIMIT = 20
IMAGES = "Virtual_Guest_Block_Device_Template_Group"
CATALOG_PRICE = f"estimate from the catalog of {catalog.AS_OF}"
ACCOUNT_PRICE = "the account's answer to verifyOrder"
OUTPUTS = ("accountId", "endpoint", "username", "backendRouterId", "pricePerHour", "priceSource", "currency")


class LedgerSpec(Hardware):
    """The cluster to come."""

    mark: Annotated[str, pydantic.StringConstraints(pattern=MARK_PATTERN)]
    stack: str
    nodes: int = pydantic.Field(ge=1, le=64)

    def planned(self, router: str, count: int) -> list[GuestSpec]:
        """Describe nodes to come, as far as their order can be verified before keys and groups exist."""
        named = {"mark": self.mark, "domain": f"{marks.owner(self.stack, self.mark)}.{marks.ZONE}"}
        asked = self.model_dump(include=set(Hardware.model_fields)) | named
        asked |= {
            "backend_router_id": router,
            "image_id": None,
        }  # What is verified is a stock system in the image's place.
        return [GuestSpec.model_construct(hostname=f"planned-{each}", **asked) for each in range(count)]


def check(inputs: Mapping[str, Any], old_inputs: Mapping[str, Any]) -> list[Problem]:
    """Say what is wrong with the inputs."""
    return other_mark(inputs, old_inputs) or problems(LedgerSpec, inputs)


def known_outputs(inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Price the cluster by the catalog, and keep the router as long as datacenter and VLAN stay."""
    price = guest_order.catalog_price(inputs)
    known = {"pricePerHour": price, "priceSource": CATALOG_PRICE, "currency": "USD"} if price else {}
    router = inputs.get("backendRouterId")
    same_vlan = inputs.get("privateVlanId") in (None, old.get("privateVlanId"))
    if old and not router and same_vlan and old.get("datacenter") == inputs.get("datacenter"):
        router = old.get("backendRouterId")
    if router:
        known["backendRouterId"] = router
    kept = {key: old[key] for key in ("accountId", "endpoint", "username") if key in old}
    return {**kept, **known}


def create(op: Operation, inputs: Mapping[str, Any]) -> Created:
    """Check the key, the catalog, the network and the price of the whole cluster; order nothing."""
    spec = LedgerSpec.of(inputs)
    return Created(marks.owner(spec.stack, spec.mark), _checked(op, op.backend().account, spec, None))


def read(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> Live | None:
    """Prove that the key still belongs to the recorded account; nothing else of a ledger can drift."""
    if not inputs:
        raise ProviderError(f"importing ledger {resource_id}: a ledger is made by 'pulumi up' and never imported.")
    op.backend(old.get("accountId"))
    return Live(dict(inputs), {key: old.get(key) for key in OUTPUTS})


def update(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Check the cluster anew."""
    spec = LedgerSpec.of(inputs)
    account = op.backend(old.get("accountId")).account
    return _checked(op, account, spec, old.get("backendRouterId") if old.get("datacenter") == spec.datacenter else None)


def delete(op: Operation, resource_id: str, inputs: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Cancel whatever in the account still bears the mark, prove that nothing is billed, and log the receipt."""
    backend = op.backend(old.get("accountId"))
    owner = marks.Owner(str(inputs["stack"]), str(inputs["mark"]))
    op.log.info(as_lines(sweep.clean(op, backend, owner), owner.mark))


def _checked(op: Operation, account: Account, spec: LedgerSpec, router: str | None) -> dict[str, Any]:
    identity = account.identity()
    check_to_order(account)
    living = [
        guest for guest in account.guest_list.under(marks.Owner(spec.stack, spec.mark)) if guest_view.is_alive(guest)
    ]
    chosen = (
        routers.of_vlan(account.api, spec.datacenter, spec.private_vlan_id)
        if spec.private_vlan_id
        else routers.choose(account.api, spec.datacenter, spec.backend_router_id, router, living)
    )
    if spec.image_id is not None:
        _check_image(op, account, spec.image_id)
    missing = max(spec.nodes - len(living), 1)
    _check_room(op, account, missing)
    price, currency = _price(account, spec, chosen, missing=missing)
    return {
        "accountId": identity.account_id,
        "endpoint": identity.endpoint,
        "username": identity.username,
        "backendRouterId": chosen,
        "pricePerHour": f"{price:f}",
        "priceSource": ACCOUNT_PRICE,
        "currency": currency,
    }


def _check_room(op: Operation, account: Account, missing: int) -> None:
    """Warn where the account's limit may refuse a later order: no call tells the limit, and verifyOrder does not look at it."""
    present = len(account.api.read_all("Account", "getVirtualGuests", mask="mask[id]"))
    if present + missing > USUAL_INSTANCE_LIMIT:
        op.log.warn(
            f"The account has {present} guests, and {missing} more are to be ordered. An account may have "
            f"{USUAL_INSTANCE_LIMIT} at once unless the vendor has raised its limit; if an order is refused, ask for more."
        )


def _check_image(op: Operation, account: Account, image_id: str) -> None:
    if account.api.find(IMAGES, image_id, "mask[id,globalIdentifier]") is None:
        raise ProviderError(f"checking the image {image_id}: the account has none of this id. Name another, or an os.")
    if not account.api.read(IMAGES, "isCloudInit", id=int(image_id)):
        op.log.warn(
            f"Image {image_id} does not use cloud-init: its machines show host keys of their own, and connections to them "
            "are refused until 'fab trust NODE' records the key on your word."
        )


def _price(account: Account, spec: LedgerSpec, router: str, *, missing: int) -> tuple[Decimal, str]:
    """Ask for the order of what is missing, so that a quota that is nearly used up does not count our own guests twice."""
    planned = spec.planned(router, missing)
    try:
        answer = guest_order.verify(account.api, planned)
    except ApiError as error:
        advice = guest_order.where_else(spec.stack, planned[0], error)
        raise ProviderError(
            f"verifying the order of {missing} x {spec.flavor} in {spec.datacenter}: {error.text} ({error.code}). "
            f"Nothing was ordered. {advice or 'Correct the stack file, or choose another datacenter or flavor.'}"
        ) from error
    whole = Decimal(str(answer.get("postTaxRecurringHourly") or answer.get("preTaxRecurringHourly") or 0))
    return (whole / missing * spec.nodes).normalize(), str(answer.get("currencyShortName") or "USD")
