"""The Ledger resource: what an account is checked for before the first order, and where it has room."""

from contextlib import suppress
from typing import Any

from microcluster.accounts.paperspace import catalog
from microcluster.accounts.paperspace.account import MACHINES, Paperspace
from microcluster.accounts.paperspace.api import ApiError
from microcluster.accounts.paperspace.declared import Ledger
from microcluster.accounts.paperspace.specs import LedgerSpec
from microcluster.accounts.paperspace.views import MACHINE
from microcluster.accounts.shared import resource
from microcluster.accounts.shared.errors import ProviderError
from microcluster.accounts.shared.order import Operation
from microcluster.accounts.shared.spec import Values
from microcluster.core.home import Owner


class Ledgers(resource.Ledger):
    """The account as a stack uses it."""

    DECLARED = Ledger

    def checked(self, op: Operation, market: Paperspace, spec: LedgerSpec, old: Values) -> dict[str, Any]:
        """Check the key, the offer and the room."""
        market.check_sees_all(f"checking the account for {spec.stack}")
        missing = spec.nodes - len(market.under(MACHINE, Owner(spec.stack, spec.mark)))
        if missing > 0:
            check_template(market, spec.template_id, spec.machine_type)
            full = full_region(market, spec.stack, spec)
            if full:
                raise ProviderError(f"checking the account for {spec.stack}: nothing was ordered. {full}")
            _check_limit(market, spec, missing)
        return {"accountId": market.whoami().account_id, **resource.priced(spec.prices())}


def check_template(market: Paperspace, template_id: str, machine_type: str) -> None:
    """Refuse a template that is gone, or that is not for this type of machine.

    Raises:
        ProviderError: the text says which types it is for.
    """
    doing = f"checking template {template_id}"
    template = next(
        (each for each in market.api.list("/os-templates", order_by="name") if each.get("id") == template_id), None
    )
    if template is None:
        raise ProviderError(f"{doing}: the account offers none of this id. Nothing was ordered. Name another one.")
    rows = [each for each in template.get("availableMachineTypes") or [] if isinstance(each, dict)]
    offered = [str(each.get("machineTypeLabel")) for each in rows if each.get("isAvailable")]
    if machine_type not in offered:
        raise ProviderError(
            f"{doing} ({template.get('name')}): it is not offered for {machine_type}, but for {', '.join(sorted(offered)) or 'none'}. "
            "Nothing was ordered. Choose another template or type."
        )


def full_region(market: Paperspace, stack: str, spec: Any) -> str | None:
    """Say that a region has no machine of a type at this moment, and which others have one; None where it has one."""
    if _has_room(market, spec.machine_type, spec.region):
        return None
    full, others = f"{spec.region} has no {spec.machine_type} at the moment.", []
    with suppress(ApiError):
        others = [each for each in catalog.REGIONS if _has_room(market, spec.machine_type, each)]
    if not others:
        return f"{full} No other region has it now: try again later, or choose another type."
    named = " and ".join(f"{each} ({catalog.REGIONS[each]})" for each in others)
    return f"{full} {named} have it now: set cluster.region in stacks/Pulumi.{stack}.yaml, or try again later."


def _has_room(market: Paperspace, machine_type: str, region: str) -> bool:
    found = market.api.read("/machine-availability", machineType=machine_type, region=region)
    return found.get("available") is True


def _check_limit(market: Paperspace, spec: LedgerSpec, missing: int) -> None:
    """Refuse where the team's own limit would leave a part of the cluster unordered."""
    limit = market.session["team"].get("maxMachines")
    present = len(market.api.list(MACHINES))
    if isinstance(limit, int | float) and not isinstance(limit, bool) and present + missing > limit:
        raise ProviderError(
            f"checking the account for {spec.stack}: its team may have {limit:g} machines, it has {present}, and {missing} more "
            "are to be ordered. Nothing was ordered. Ask the vendor for a higher limit, or delete machines that nobody needs."
        )
