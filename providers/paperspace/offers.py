"""What the account offers at this moment: which types a template may have, and where there is room for one."""

from core.catalog import paperspace as catalog
from providers.paperspace.account import Account
from providers.paperspace.api import ApiError
from providers.rental.errors import ProviderError


def check_template(account: Account, template_id: str, machine_type: str) -> None:
    """Refuse a template that is gone, or that is not for this type of machine.

    Raises:
        ProviderError: the text says which types it is for.
    """
    doing = f"checking template {template_id}"
    found = next(
        (each for each in account.api.list("/os-templates", order_by="name") if each.get("id") == template_id), None
    )
    if found is None:
        raise ProviderError(f"{doing}: the account offers none of this id. Nothing was ordered. Name another one.")
    rows = [each for each in found.get("availableMachineTypes") or [] if isinstance(each, dict)]
    offered = [str(each.get("machineTypeLabel")) for each in rows if each.get("isAvailable")]
    if machine_type not in offered:
        raise ProviderError(
            f"{doing} ({found.get('name')}): it is not offered for {machine_type}, but for {', '.join(sorted(offered)) or 'none'}. "
            "Nothing was ordered. Choose another template or type."
        )


def check_room(account: Account, stack: str, machine_type: str, region: str) -> None:
    """Refuse a region that has no machine of the type right now.

    Raises:
        ProviderError: the text names the regions that have one.
    """
    if not has_room(account, machine_type, region):
        raise ProviderError(
            f"checking the account for {stack}: {region} has no {machine_type} at the moment. Nothing was ordered. "
            f"{where_else(account, stack, machine_type, region)}"
        )


def has_room(account: Account, machine_type: str, region: str) -> bool:
    """Ask whether a region has a machine of the type; an answer of this moment, and no promise."""
    found = account.api.read("/machine-availability", machineType=machine_type, region=region)
    return found.get("available") is True


def where_else(account: Account, stack: str, machine_type: str, region: str) -> str:
    """Say which other regions have a machine of the type."""
    try:
        others = [each for each in catalog.REGIONS if each != region and has_room(account, machine_type, each)]
    except ApiError:
        others = []
    if others:
        named = " and ".join(f"{each} ({catalog.REGIONS[each]})" for each in others)
        return f"{named} have it now: set cluster.region in stacks/Pulumi.{stack}.yaml, or try again later."
    return "No other region has it now: try again later, or choose another type."
