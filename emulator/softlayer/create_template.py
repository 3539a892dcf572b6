"""Read a create template (``createObject``), and refuse what SoftLayer refuses."""

from typing import Any

from emulator.machines.spec import Disk
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Flavor, Image, Price
from emulator.softlayer.faults import (
    ORDER_INVALID,
    ORDER_LOCATION,
    Fault,
    invalid_value,
    lacks,
    missing,
    not_found,
    public,
)
from emulator.softlayer.host_names import read_name
from emulator.softlayer.orders import DEFAULT_PORT_SPEED, GuestOrder, Placement, check

NOT_EMULATED = (
    *("privateNetworkOnlyFlag", "postInstallScriptUri", "transientGuestFlag", "startCpus", "maxMemory"),
    "blockDeviceTemplateGroup",  # beside disks the vendor refuses it as well: an image goes into an order container
)


def read_template(account: Account, template: Any) -> GuestOrder:
    """The order that a create template stands for."""
    if not isinstance(template, dict):
        raise invalid_value("templateObject", "A SoftLayer_Virtual_Guest structure is needed.")
    for name in NOT_EMULATED:
        if template.get(name):
            raise lacks(f"{name} of a guest")
    hostname, domain = read_name(template)
    flavor = _flavor(account, template)
    if template.get("localDiskFlag") not in (None, "", not flavor.san):
        raise invalid_value("localDiskFlag", f"It does not agree with {flavor.key_name}.")
    order = GuestOrder(
        hostname=hostname,
        domain=domain,
        datacenter=find_datacenter(account, _below(template, "datacenter", "name")),
        flavor=flavor,
        system=_system(account, template),
        image=None,
        disks=_disks(template, flavor),
        port_speed=port_speed_of(template) or DEFAULT_PORT_SPEED,
        hourly=bool(template.get("hourlyBillingFlag")),
        ssh_key_ids=tuple(number(key.get("id"), "sshKeys.id") for key in template.get("sshKeys") or []),
        user_data=read_user_data(template),
        private=read_placement(template, "primaryBackendNetworkComponent"),
        public=read_placement(template, "primaryNetworkComponent"),
    )
    return check(account, order)


def find_datacenter(account: Account, key: Any) -> Datacenter:
    """A datacenter by name or id."""
    if not key:
        raise missing("datacenter")
    datacenter = account.catalog.datacenter(str(key))
    if datacenter is None:
        raise Fault(ORDER_LOCATION, f"The location '{key}' is not valid.")
    return datacenter


def find_image(account: Account, key: Any) -> Image:
    """An image by id or GUID."""
    image = account.catalog.image(str(key))
    if image is None:
        raise not_found(key)
    if image.foreign:
        raise public("Access Denied. ")
    return image


def port_speed_of(guest: dict[str, Any]) -> int | None:
    """The port speed that a guest structure asks for."""
    components = guest.get("networkComponents") or []
    speed = components[0].get("maxSpeed") if components else None
    return None if speed in (None, "") else number(speed, "networkComponents.maxSpeed")


def read_user_data(guest: dict[str, Any]) -> str:
    """The user data of a guest structure."""
    entries = guest.get("userData") or []
    return str(entries[0].get("value") or "") if entries else ""


def read_placement(guest: dict[str, Any], component: str) -> Placement:
    """The VLAN, router and security groups that a guest's template wants for one of its interfaces."""
    interface = guest.get(component) or {}
    vlan, router = _below(interface, "networkVlan", "id"), _below(interface, "router", "id")
    if _below(interface, "networkVlan", "primarySubnet"):
        raise lacks("a subnet for a guest")
    bindings = interface.get("securityGroupBindings") or []
    return Placement(
        vlan_id=number(vlan, "networkVlan.id") if vlan else None,
        router_id=number(router, "router.id") if router else None,
        groups=tuple(number(_below(each, "securityGroup", "id"), "securityGroup.id") for each in bindings),
    )


def number(value: Any, name: str) -> int:
    """An id or a quantity, which callers also send as digits."""
    try:
        return int(value)
    except (TypeError, ValueError) as wrong:
        raise invalid_value(name, f"'{value}' is not a number.") from wrong


def _flavor(account: Account, template: dict[str, Any]) -> Flavor:
    key = _below(template, "supplementalCreateObjectOptions", "flavorKeyName")
    if not key:
        raise Fault(ORDER_INVALID, "supplementalCreateObjectOptions.flavorKeyName is needed: only flavors are sold.")
    flavor = account.catalog.flavor(str(key))
    if flavor is None:
        raise Fault(ORDER_INVALID, f"The flavor '{key}' is not valid for package {account.catalog.package_id}.")
    return flavor


def _system(account: Account, template: dict[str, Any]) -> Price:
    code = template.get("operatingSystemReferenceCode")
    if not code:
        raise missing("operatingSystemReferenceCode")
    if code not in account.catalog.systems:
        raise invalid_value("operatingSystemReferenceCode", f"'{code}' is not sold.")
    return account.catalog.systems[code]


def _disks(template: dict[str, Any], flavor: Flavor) -> tuple[Disk, ...]:
    """The disks beside the flavor's own, which the official client names as well, by their device numbers."""
    disks = []
    for each in template.get("blockDevices") or []:
        capacity = number(_below(each, "diskImage", "capacity"), "blockDevices.diskImage.capacity")
        disks.append(Disk(number(each.get("device"), "blockDevices.device"), capacity))
    return tuple(sorted((each for each in disks if each != Disk(0, flavor.boot_gb)), key=lambda each: each.device))


def _below(value: Any, *names: str) -> Any:
    """The value at a path of keys; None where a key is missing, nil or empty."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
