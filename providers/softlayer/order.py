"""Ordering a guest: one order per guest, sent once; an answer that got lost is resolved by looking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from providers.softlayer import mark
from providers.softlayer.calls import Api
from providers.softlayer.errors import ApiError, ProviderError, WaitError
from providers.softlayer.waiting import Patience, Pending, wait_until

STOCK_SYSTEM = "UBUNTU_LATEST_64"
FIRST_DATA_DEVICE = 2
"""Device 0 is the flavour's boot disk, 1 the swap."""
LISTS_LAG_S = 120.0
"""Lists may lag this far behind an accepted order."""

Template = dict[str, Any]


class Ordered(Protocol):
    """The properties of a guest that go into its order."""

    hostname: str
    domain: str
    datacenter: str
    flavor: str
    os: str | None
    image_id: str | None
    data_disks_gb: tuple[int, ...]
    port_speed_mbps: int
    backend_router_id: str | None
    private_vlan_id: str | None
    ssh_key_ids: tuple[str, ...]
    public_security_group_ids: tuple[str, ...]
    private_security_group_ids: tuple[str, ...]


def guest_template(spec: Ordered, user_data: str) -> Template:
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


def place(api: Api, spec: Ordered, user_data: str, before: Callable[[], None]) -> str:
    """Order the guest and return its id.

    Args:
        before: called immediately before the one call that costs money; raises to prevent it.
    """
    template = guest_template(spec, user_data)
    if spec.image_id is None:
        before()
        return _id(api.once("Virtual_Guest", "createObject", template), "Virtual_Guest::createObject")
    container = _container_with_image(api, spec.image_id, template)
    before()
    ordered = api.once("Product_Order", "placeOrder", container)
    found = (ordered.get("orderDetails") or {}).get("virtualGuests") or [{}]
    return _id(found[0], f"Product_Order::placeOrder, order {ordered.get('orderId')}")


def resolve(name: str, error: ApiError, look: Callable[[], str | None], patience: Patience) -> str:
    """Find the guest of an order whose answer got lost; never order again without knowing.

    Args:
        look: returns the id of the living guest that bears mark and hostname, or None.
    """
    try:
        return wait_until(
            f"the order of {name}",
            lambda: look() or Pending("not in the account's lists"),
            patience.within(LISTS_LAG_S),
        )
    except WaitError as late:
        raise ProviderError(
            f"ordering {name}: the answer got lost ({error}), and no such guest appeared in the account since. "
            "Nothing was ordered a second time. Run the command again: it looks before it orders."
        ) from late


def verify(api: Api, specs: Sequence[Ordered]) -> dict[str, Any]:
    """Ask the account whether it would accept the order of all these equal guests, and for how much."""
    template = guest_template(specs[0], "")
    del template["userData"]
    container = api.read("Virtual_Guest", "generateOrderTemplate", template)
    described = [{"hostname": spec.hostname, "domain": spec.domain, **_lost(template)} for spec in specs]
    whole = {**container, "quantity": len(specs), "useHourlyPricing": True, "virtualGuests": described}
    return api.read("Product_Order", "verifyOrder", whole)


def _container_with_image(api: Api, image_id: str, template: Template) -> dict[str, Any]:
    image = api.find("Virtual_Guest_Block_Device_Template_Group", image_id, "mask[id,globalIdentifier]")
    if image is None:
        raise ProviderError(
            f"ordering {template['hostname']}: the account has no image {image_id}. Name another image or an os."
        )
    container = image_container(api.read("Virtual_Guest", "generateOrderTemplate", template), template, image)
    api.read("Product_Order", "verifyOrder", container)
    return container


def _id(answer: Any, call: str) -> str:
    if isinstance(answer, dict) and answer.get("id"):
        return str(answer["id"])
    raise ApiError(f"calling {call}", "unreadable answer", "the answer names no guest")


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


def _place(spec: Ordered) -> dict[str, Any]:
    # A VLAN hangs on its router already, and the service refuses both together.
    if spec.private_vlan_id:
        return {"networkVlan": {"id": int(spec.private_vlan_id)}}
    return {"router": {"id": int(spec.backend_router_id)}} if spec.backend_router_id else {}


def full_name(spec: Ordered) -> str:
    """Name the guest for a person."""
    return f"guest {spec.hostname} of {mark.owner_of(spec.domain)}"
