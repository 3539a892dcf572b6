"""The order of a guest, in SoftLayer's words: what it asks for, and what the account says to it before it is sent."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from core.catalog import softlayer as catalog
from providers.rental.account import Quote
from providers.rental.errors import CallError, ProviderError
from providers.softlayer.api import Api
from providers.softlayer.errors import ApiError
from providers.softlayer.orders import Order
from providers.softlayer.specs import GuestSpec, LedgerSpec

ACCOUNT_PRICE = "the account's answer to verifyOrder"
STOCK_SYSTEM = "UBUNTU_LATEST_64"
FIRST_DATA_DEVICE = 2
"""Device 0 is the flavor's boot disk, 1 the swap."""

Template = dict[str, Any]


def guest_template(spec: GuestSpec, user_data: str) -> Template:
    """Write the create template of a guest with a stock system: everything rides in one order.

    With an image the system's place is taken by a stock one, see ``image_container``.
    """
    return {
        "hostname": spec.hostname,
        "domain": spec.domain,
        "datacenter": {"name": spec.datacenter},
        "hourlyBillingFlag": True,
        "localDiskFlag": False,
        "supplementalCreateObjectOptions": {"flavorKeyName": spec.flavor},
        "operatingSystemReferenceCode": spec.os or STOCK_SYSTEM,
        "blockDevices": _disks(spec.data_disks_gb),
        "networkComponents": [{"maxSpeed": spec.port_speed_mbps}],
        "primaryNetworkComponent": _component(spec.public_security_group_ids),
        "primaryBackendNetworkComponent": _component(spec.private_security_group_ids) | _place(spec),
        "sshKeys": [{"id": int(key)} for key in spec.ssh_key_ids],
        "userData": [{"value": user_data}],
    }


def image_container(container: dict[str, Any], template: Template, image: dict[str, Any]) -> dict[str, Any]:
    """Put an image in the stock system's place, and put back what the generated container has lost.

    The service refuses an image together with disks, and its generated containers lose user data, port speed and network.
    """
    guest = {**(container.get("virtualGuests") or [{}])[0], **_lost(template)}
    prices = [price for price in container["prices"] if not _is_system(price)]
    return {
        **container,
        "prices": prices,
        "imageTemplateId": image["id"],
        "virtualGuests": [{**guest, "blockDeviceTemplateGroup": {"globalIdentifier": image["globalIdentifier"]}}],
    }


def prepared(api: Api, spec: GuestSpec, user_data: str) -> Order:
    """Write the whole order, ready to be sent: the create template, or with an image a container that the service verified."""
    template = guest_template(spec, user_data)
    if spec.image_id is None:
        return Order("Virtual_Guest", "createObject", template)
    return Order("Product_Order", "placeOrder", _container_with_image(api, spec.image_id, template))


def catalog_price(inputs: Mapping[str, Any]) -> str | None:
    """Price guests by the catalog, a decimal as text; None where a preview cannot know."""
    try:
        disks = tuple(int(size) for size in inputs.get("dataDisksGb") or ())
        price = catalog.price_per_hour(str(inputs["flavor"]), disks, int(inputs["portSpeedMbps"]))
        return None if price is None else f"{price * int(inputs.get('nodes', 1)):f}"
    except (KeyError, TypeError, ValueError):
        return None


def verify(api: Api, specs: Sequence[GuestSpec]) -> dict[str, Any]:
    """Ask the account whether it would accept the order of all these equal guests, and for how much."""
    template = guest_template(specs[0], "")
    del template["userData"]
    container = api.read("Virtual_Guest", "generateOrderTemplate", template)
    described = [{"hostname": spec.hostname, "domain": spec.domain, **_lost(template)} for spec in specs]
    whole = {**container, "quantity": len(specs), "useHourlyPricing": True, "virtualGuests": described}
    return api.read("Product_Order", "verifyOrder", whole)


def quote(api: Api, spec: LedgerSpec, router: str | None = None, count: int = 1) -> Quote:
    """Let the account verify the order of ``count`` guests, and say what all guests of the stack cost.

    Raises:
        ProviderError: the account would refuse it.
    """
    planned = spec.planned(router or spec.backend_router_id, count)
    try:
        answer = verify(api, planned)
    except ApiError as error:
        advice = where_else(spec.stack, planned[0], error)
        raise ProviderError(
            f"verifying the order of {count} x {spec.flavor} in {spec.datacenter}: {error.text} ({error.code}). "
            f"Nothing was ordered. {advice or 'Correct the stack file, or choose another datacenter or flavor.'}"
        ) from error
    hourly, monthly = (_total(answer, f"Recurring{unit}") / count * spec.nodes for unit in ("Hourly", "Monthly"))
    more = f", and {monthly.normalize():f} a month for what it bills by the month" if monthly else ""
    currency = str(answer.get("currencyShortName") or "USD")
    return Quote(hourly.normalize() or None, f"{ACCOUNT_PRICE}{more}", currency)


def _total(answer: Mapping[str, Any], what: str) -> Decimal:
    return Decimal(str(answer.get(f"postTax{what}") or answer.get(f"preTax{what}") or 0))


def where_else(stack: str, spec: GuestSpec, error: CallError) -> str | None:
    """Say where the flavor is sold, where its datacenter is full; None for any other error."""
    if not isinstance(error, ApiError) or not error.is_no_room:
        return None
    flavor = catalog.FLAVORS.get(spec.flavor)
    others = [each for each in flavor.datacenters if each != spec.datacenter] if flavor else []
    start = f"{spec.datacenter} has no room for {spec.flavor} now"
    if not others:
        return f"{start}, and the catalog knows no other that sells it. Run the command again later, or choose another flavor."
    return (
        f"{start}; it is also sold in {', '.join(others)} (catalog of {catalog.AS_OF}). Change it with 'pulumi config set "
        f"--path microcluster:cluster.datacenter {others[0]} -s {stack}' (cluster.datacenter in the stack file) and run the "
        "command again: all nodes move there. Or wait, and run it again as it is."
    )


def _container_with_image(api: Api, image_id: str, template: Template) -> dict[str, Any]:
    image = api.find("Virtual_Guest_Block_Device_Template_Group", image_id, "mask[id,globalIdentifier]")
    if image is None:
        raise ProviderError(
            f"ordering {template['hostname']}: the account has no image {image_id}. Name another image or an os."
        )
    container = image_container(api.read("Virtual_Guest", "generateOrderTemplate", template), template, image)
    api.read("Product_Order", "verifyOrder", container)
    return container


def _lost(template: Template) -> dict[str, Any]:
    kept = ("userData", "networkComponents", "primaryNetworkComponent", "primaryBackendNetworkComponent")
    return {name: template[name] for name in kept if template.get(name)}


def _is_system(price: dict[str, Any]) -> bool:
    codes = [category.get("categoryCode") for category in price.get("categories") or []]
    item = price.get("item") or {}
    codes.append((item.get("itemCategory") or {}).get("categoryCode"))
    return "os" in codes or str(item.get("keyName", "")).startswith("OS_")


def _disks(sizes: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"device": str(device), "diskImage": {"capacity": size}}
        for device, size in enumerate(sizes, start=FIRST_DATA_DEVICE)
    ]


def _component(group_ids: Sequence[str]) -> dict[str, Any]:
    groups = [{"securityGroup": {"id": int(group)}} for group in group_ids]
    return {"securityGroupBindings": groups} if groups else {}


def _place(spec: GuestSpec) -> dict[str, Any]:
    # A VLAN hangs on its router already, and the service refuses both together.
    if spec.private_vlan_id:
        return {"networkVlan": {"id": int(spec.private_vlan_id)}}
    return {"router": {"id": int(spec.backend_router_id)}} if spec.backend_router_id else {}
