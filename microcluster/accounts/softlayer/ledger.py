"""The Ledger resource: what an account is checked for before the first order, with the one router of the cluster."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pydantic import ValidationError

from microcluster.accounts.shared import resource
from microcluster.accounts.shared.account import Quote, Resource
from microcluster.accounts.shared.api_calls import at
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.key_file import CredentialsError
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.spec import Values
from microcluster.accounts.softlayer import billing, catalog
from microcluster.accounts.softlayer.account import SoftLayer
from microcluster.accounts.softlayer.api import Api
from microcluster.accounts.softlayer.declared import Ledger
from microcluster.accounts.softlayer.specs import GUEST, LedgerSpec
from microcluster.core.home import Owner

USUAL_INSTANCE_LIMIT = 20
IMAGES = "Virtual_Guest_Block_Device_Template_Group"
PREVIEW_LIMIT_S = 3.0
"""Longest wait of a preview for the account's price."""
CLOSING = "CLOSURE_ANNOUNCED"
VLAN_MASK = "mask[id,networkSpace,primaryRouter[id,datacenter[name]]]"


class Ledgers(resource.Ledger):
    """The account as a stack uses it."""

    DECLARED = Ledger

    def known_outputs(self, inputs: Values, old: Values) -> dict[str, Any]:
        """Price the cluster by the catalog, and keep the router as long as datacenter and VLAN stay."""
        outputs = super().known_outputs(inputs, old)
        is_same_vlan = inputs.get("privateVlanId") in (None, old.get("privateVlanId"))
        if inputs.get("backendRouterId"):
            outputs["backendRouterId"] = inputs["backendRouterId"]
        elif not is_same_vlan or old.get("datacenter") != inputs.get("datacenter"):
            outputs.pop("backendRouterId", None)
        return outputs

    def previewed(self, op: Operation, inputs: Values, old: Values) -> dict[str, Any]:
        """Price the cluster by the account, if there is a key and a prompt answer, else by the catalog."""
        outputs = self.known_outputs(inputs, old)
        try:
            spec = LedgerSpec.model_validate(inputs)
        except ValidationError:  # A preview need not know all inputs.
            return outputs
        account_id = old.get("accountId")
        try:
            quote = _answered(PREVIEW_LIMIT_S, lambda: billing.quote(op.market(account_id).api, spec))
            return outputs | resource.priced(quote)
        except CredentialsError:
            why = "there is no key"
        except (ProviderError, ArithmeticError) as error:
            op.log.info(f"The account gave no price: {error}")
            why = "the account gave no price"
        return {**outputs, "priceSource": f"{catalog.PRICE_SOURCE}, as {why}"}

    def checked(self, op: Operation, market: SoftLayer, spec: LedgerSpec, old: Values) -> dict[str, Any]:
        """Check the key, the catalog, the network and the price of the whole cluster."""
        router = old.get("backendRouterId") if old.get("datacenter") == spec.datacenter else None
        market.api.check_to_order()
        guests = market.resources(Owner(spec.stack, spec.mark), GUEST)
        living = [guest for guest in guests if guest.is_alive]
        chosen = _router(market.api, spec, router, living)
        if spec.image_id is not None:
            _check_image(op, market, spec.image_id)
        missing = max(spec.nodes - len(living), 1)
        _check_room(op, market, missing)
        # Only what is missing is verified: a quota that is nearly used up would count our own guests twice.
        quote = billing.quote(market.api, spec, chosen, missing)
        return {
            "accountId": market.whoami().account_id,
            "backendRouterId": chosen,
            **resource.priced(quote),
        }


def _answered(limit_s: float, ask: Callable[[], Quote]) -> Quote:
    """Return an answer that comes in time; a call that is late goes on behind and hinders nobody.

    Raises:
        ProviderError: there is none yet, or what the call raised.
    """
    try:
        return ThreadPoolExecutor(1).submit(ask).result(limit_s)
    except TimeoutError as late:
        raise ProviderError(f"it did not answer within {limit_s:g} s.") from late


def _check_room(op: Operation, market: SoftLayer, missing: int) -> None:
    """Warn where the account's limit may refuse a later order: no call tells the limit, and verifyOrder does not look at it."""
    present = len(market.api.read_all("Account", "getVirtualGuests", mask="mask[id]"))
    if present + missing > USUAL_INSTANCE_LIMIT:
        op.log.warn(
            f"The account has {present} guests, and {missing} more are to be ordered. An account may have "
            f"{USUAL_INSTANCE_LIMIT} at once unless the vendor has raised its limit; if an order is refused, ask for more."
        )


def _check_image(op: Operation, market: SoftLayer, image_id: str) -> None:
    if market.api.find(IMAGES, image_id, "mask[id,globalIdentifier]") is None:
        raise ProviderError(f"checking the image {image_id}: the account has none of this id. Name another, or an os.")
    if not market.api.read(IMAGES, "isCloudInit", id=int(image_id)):
        op.log.warn(
            f"Image {image_id} does not use cloud-init: its machines show host keys of their own, and connections to them "
            "are refused until 'fab trust NODE' records the key on your word."
        )


def _router(api: Api, spec: LedgerSpec, recorded: str | None, living: Sequence[Resource]) -> str:
    """Choose the router: the VLAN's, the wanted one, the recorded one, the one our guests stand behind, or the first that stays."""
    if spec.private_vlan_id:
        vlan = api.find("Network_Vlan", spec.private_vlan_id, VLAN_MASK)
        return router_of(spec.private_vlan_id, vlan, spec.datacenter)
    pods = api.read_all("Network_Pod", "getAllObjects", mask="mask[name,datacenterId,backendRouterId,capabilities]")
    shown = (guest.inputs.get("backendRouterId") for guest in living)
    kept = recorded or next((router for router in shown if router), None)
    return pick(spec.datacenter, pods, spec.backend_router_id, kept)


def pick(datacenter: str, pods: Sequence[dict[str, Any]], wanted: str | None, kept: str | None) -> str:
    """Decide among the datacenter's pods; their names begin with it, as in ``lon04.pod01``."""
    here = sorted((pod for pod in pods if str(pod["name"]).startswith(f"{datacenter}.")), key=lambda pod: pod["name"])
    routers = {str(pod["backendRouterId"]): pod for pod in here}
    if not routers:
        raise ProviderError(
            f"choosing a router in {datacenter}: the account shows no pod there. Choose another datacenter."
        )
    if wanted is not None and wanted not in routers:
        known = ", ".join(routers)
        raise ProviderError(
            f"choosing a router in {datacenter}: {wanted} is not there, only {known}. Correct the stack file."
        )
    if wanted is not None or kept in routers:
        return str(wanted or kept)
    staying = [router for router, pod in routers.items() if CLOSING not in (pod.get("capabilities") or [])]
    return (staying or list(routers))[0]


def router_of(vlan_id: str, vlan: Mapping[str, Any] | None, datacenter: str) -> str:
    """Read the router of a private VLAN in the datacenter; anything else is refused."""
    checking = f"checking the private VLAN {vlan_id}"
    if vlan is None:
        raise ProviderError(
            f"{checking}: the account has none of this id. Name the id, not the number, of one that is there (an automatic "
            "one goes with its last guest), or leave the VLAN out of the stack file."
        )
    if vlan.get("networkSpace") != "PRIVATE":
        raise ProviderError(f"{checking}: it is a {vlan.get('networkSpace')} one. Name a private VLAN in {datacenter}.")
    place = at(vlan, "primaryRouter.datacenter.name")
    if place != datacenter:
        raise ProviderError(
            f"{checking}: it is in {place}, the cluster in {datacenter}. Name a private VLAN in {datacenter}."
        )
    return str(at(vlan, "primaryRouter.id"))
