"""Datacenters, routers, pods, VLANs and subnets as the API shows them."""

from ipaddress import IPv4Network
from typing import Any

from emulator.machines.networks import gateway
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Router
from emulator.softlayer.objects import bills, guests, security
from emulator.softlayer.records import Vlan
from emulator.softlayer.views import View
from emulator.softlayer.vlans import guests_on

STANDARD_PRICE_GROUP = {"id": 1, "description": "Standard", "name": "Standard"}


def datacenter(place: Datacenter) -> View:
    """A datacenter."""
    local = {"id": place.id, "name": place.name, "longName": place.long_name, "statusId": 2}
    region = {"keyname": place.name.upper(), "description": f"{place.name.upper()} - {place.long_name}"}
    return View(
        local,
        {
            "priceGroups": lambda: [STANDARD_PRICE_GROUP],
            "regions": lambda: [region],
            "groups": lambda: [STANDARD_PRICE_GROUP],
        },
    )


def region(place: Datacenter) -> View:
    """A region of a package, which is one datacenter."""
    local = {"keyname": place.name.upper(), "description": f"{place.name.upper()} - {place.long_name}", "sortOrder": 0}
    # The official client reads the datacenter in it without asking for it, so the real service shows it always.
    location = View(
        {"locationId": place.id, "location": datacenter(place)},
        {"locationPackageDetails": list},
    )
    return View(local | {"location": location}, {"locations": lambda: [location]})


def router(account: Account, device: Router) -> View:
    """A router."""
    local = {
        "id": device.id,
        "hostname": device.hostname,
        "domain": "emulator.microcluster",
        "fullyQualifiedDomainName": f"{device.hostname}.emulator.microcluster",
    }
    behind = [each for each in account.store.vlans.values() if each.router_id == device.id]
    return View(
        local,
        {
            "datacenter": lambda: datacenter(device.datacenter),
            "datacenterName": lambda: device.datacenter.long_name,
            "topLevelLocation": lambda: datacenter(device.datacenter),
            "hardwareStatus": lambda: {"id": 5, "status": "ACTIVE"},
            "networkVlans": lambda: [vlan(account, each) for each in behind],
        },
    )


def pod(account: Account, backend: Router) -> View:
    """A pod: the pair of routers with one number in one datacenter."""
    place = backend.datacenter
    frontend = next(
        each
        for each in account.catalog.routers
        if not each.private and (each.datacenter, each.pod) == (place, backend.pod)
    )
    return View(
        {
            "name": f"{place.name}.pod{backend.pod:02d}",
            "datacenterId": place.id,
            "datacenterName": place.name,
            "datacenterLongName": place.long_name,
            "backendRouterId": backend.id,
            "backendRouterName": backend.hostname,
            "frontendRouterId": frontend.id,
            "frontendRouterName": frontend.hostname,
            "capabilities": ["SUPPORTS_SECURITY_GROUP"],
        }
    )


def vlan(account: Account, record: Vlan) -> View:
    """A VLAN; an automatic one has no billing item."""
    items = account.store.billing_items
    device = account.catalog.router(record.router_id)
    pod_name = f"{device.datacenter.name}.pod{device.pod:02d}"
    name = f"{device.datacenter.name}.{device.hostname.split('.')[0]}.{record.number}"
    return View(
        {"id": record.id, "vlanNumber": record.number, "name": record.name, "primarySubnetId": record.subnet_id},
        {
            "networkSpace": lambda: "PRIVATE" if record.private else "PUBLIC",
            "fullyQualifiedName": lambda: name,
            "podName": lambda: pod_name,
            "primaryRouter": lambda: router(account, device),
            "datacenter": lambda: datacenter(device.datacenter),
            "primarySubnet": lambda: subnet(account, record),
            "primarySubnets": lambda: [subnet(account, record)],
            "subnets": lambda: [subnet(account, record)],
            "virtualGuests": lambda: [guests.guest(account, each) for each in guests_on(account, record)],
            "totalPrimaryIpAddressCount": lambda: IPv4Network(record.cidr).num_addresses,
            "tagReferences": lambda: security.tag_references(record.tags),
            "billingItem": lambda: bills.of(account, items[record.billing_item_id]) if record.billing_item_id else None,
            "hardware": list,
            "firewallInterfaces": list,
            "networkComponentTrunks": list,
        },
    )


def subnet(account: Account, record: Vlan) -> View:
    """The primary subnet of a VLAN."""
    network = IPv4Network(record.cidr)
    device = account.catalog.router(record.router_id)
    space = "PRIVATE" if record.private else "PUBLIC"
    return View(
        {
            "id": record.subnet_id,
            "networkIdentifier": str(network.network_address),
            "cidr": network.prefixlen,
            "netmask": str(network.netmask),
            "gateway": gateway(record.cidr),
            "broadcastAddress": str(network.broadcast_address),
            "subnetType": "PRIMARY",
            "version": 4,
            "networkVlanId": record.id,
            "usableIpAddressCount": network.num_addresses - 3,
            "totalIpAddresses": network.num_addresses,
            "note": "",
        },
        {
            "datacenter": lambda: datacenter(device.datacenter),
            "networkVlan": lambda: vlan(account, record),
            "addressSpace": lambda: space,
            "ipAddressCount": lambda: network.num_addresses,
            "virtualGuests": lambda: [guests.guest(account, each) for each in guests_on(account, record)],
            "ipAddresses": lambda: _addresses(account, record),
            "hardware": list,
            "tagReferences": list,
        },
    )


def _addresses(account: Account, record: Vlan) -> list[dict[str, Any]]:
    network = IPv4Network(record.cidr)
    special = {network.network_address: "isNetwork", network.broadcast_address: "isBroadcast", network[1]: "isGateway"}
    names = ("isNetwork", "isBroadcast", "isGateway", "isReserved")
    return [
        {"id": record.subnet_id * 10000 + number, "ipAddress": str(address), "note": ""}
        | {name: special.get(address) == name for name in names}
        for number, address in enumerate(network)
    ]
