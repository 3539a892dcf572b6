"""Read a create template (``createObject``), and refuse what SoftLayer refuses."""

from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Flavor, Image, System
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
from emulator.softlayer.orders import BOOT_DEVICE, DEFAULT_PORT_SPEED, SWAP_DEVICE, GuestOrder, Placement, check

NOT_EMULATED = ("privateNetworkOnlyFlag", "postInstallScriptUri")


def read_template(account: Account, template: Any) -> GuestOrder:
    """The order that a create template stands for."""
    if not isinstance(template, dict):
        raise invalid_value("templateObject", "A SoftLayer_Virtual_Guest structure is needed.")
    for name in NOT_EMULATED:
        if template.get(name):
            raise lacks(f"{name} of a guest")
    hostname, domain = read_name(template)
    datacenter = find_datacenter(account, _below(template, "datacenter", "name"))
    flavor = _flavor(account, template)
    system, image = _system_or_image(account, template)
    _refuse_clashes(template, flavor, image)
    order = GuestOrder(
        hostname=hostname,
        domain=domain,
        datacenter=datacenter,
        flavor=flavor,
        system=system,
        image=image,
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
    """Where a guest structure wants one of its interfaces."""
    wanted = guest.get(component) or {}
    vlan = wanted.get("networkVlan") or {}
    subnet = _below(vlan, "primarySubnet", "id")
    if subnet and not vlan.get("id"):
        raise public("A subnet can only be given together with its VLAN.")
    router = _below(wanted, "router", "id") or _below(vlan, "router", "id")
    bindings = wanted.get("securityGroupBindings") or []
    return Placement(
        vlan_id=number(vlan["id"], "networkVlan.id") if vlan.get("id") else None,
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
        raise Fault(ORDER_INVALID, f"The flavor '{key}' is not valid for package {account.catalog.package_key}.")
    return flavor


def _system_or_image(account: Account, template: dict[str, Any]) -> tuple[System | None, Image | None]:
    code = template.get("operatingSystemReferenceCode")
    guid = _below(template, "blockDeviceTemplateGroup", "globalIdentifier")
    if code and guid:
        raise invalid_value("operatingSystemReferenceCode", "An image template was given as well.")
    if guid:
        return None, find_image(account, guid)
    if not code:
        raise missing("operatingSystemReferenceCode")
    system = account.catalog.system(str(code))
    if system is None:
        raise invalid_value("operatingSystemReferenceCode", f"'{code}' is not sold.")
    return system, None


def _refuse_clashes(template: dict[str, Any], flavor: Flavor, image: Image | None) -> None:
    if image and template.get("blockDevices"):
        raise invalid_value("blockDevices", "Block devices cannot be provided when using an image template.")
    local = template.get("localDiskFlag")
    if local not in (None, "") and bool(local) == flavor.san:
        raise invalid_value("localDiskFlag", f"It does not agree with {flavor.key_name}.")
    if template.get("transientGuestFlag"):
        raise public(f"Transient billing is not available for {flavor.key_name}.")
    cores, memory = template.get("startCpus"), template.get("maxMemory")
    if cores and number(cores, "startCpus") != flavor.cores:
        raise invalid_value("startCpus", f"{flavor.key_name} has {flavor.cores} cores.")
    if memory and number(memory, "maxMemory") not in (flavor.memory_gb, flavor.memory_gb * 1024):
        raise invalid_value("maxMemory", f"{flavor.key_name} has {flavor.memory_gb} GB.")


def _disks(template: dict[str, Any], flavor: Flavor) -> tuple[tuple[int, int], ...]:
    disks = []
    for each in template.get("blockDevices") or []:
        device = number(each.get("device"), "blockDevices.device")
        capacity = number(_below(each, "diskImage", "capacity"), "blockDevices.diskImage.capacity")
        if device == SWAP_DEVICE:
            raise invalid_value("blockDevices.device", "Device 1 is reserved for swap.")
        if device == BOOT_DEVICE:
            if capacity != flavor.boot_gb:
                raise Fault(ORDER_INVALID, f"The first disk of {flavor.key_name} has {flavor.boot_gb} GB.")
            continue
        disks.append((device, capacity))
    return tuple(sorted(disks))


def _below(value: Any, *names: str) -> Any:
    """What stands below these names; None where one of them is missing, nil or empty."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
