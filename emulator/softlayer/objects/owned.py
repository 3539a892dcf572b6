"""Views of what the account has and may order: guests, networks, keys, security groups and images."""

from ipaddress import IPv4Network
from uuid import NAMESPACE_OID, uuid5
from zlib import crc32

from emulator.machines.spec import Disk
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Datacenter, Image, Router
from emulator.softlayer.dates import iso
from emulator.softlayer.guest_machines import attached_interfaces
from emulator.softlayer.objects import bills
from emulator.softlayer.queries import View
from emulator.softlayer.records import Component, GroupRule, Guest, SecurityGroup, SshKey, Transaction, Vlan

SWAP, METADATA = Disk(1, 2), Disk(7, 1)  # beside the disks of the order


def guest(account: Account, record: Guest) -> View:
    """A virtual guest, from its order to the end of its reclaim."""
    pending, flavor = record.active(account.now), account.catalog.flavor(record.flavor)
    last = pending or record.last_transaction
    template = account.catalog.image(record.image_id) if record.image_id else None
    systems = [operating_system(account, record)] if record.system_id else []
    return View(
        {
            "id": record.id,
            "globalIdentifier": str(uuid5(NAMESPACE_OID, f"{account.id}.{record.id}")),
            "hostname": record.hostname,
            "domain": record.domain,
            "fullyQualifiedDomainName": record.name,
            "createDate": iso(record.created),
            "modifyDate": None,
            "provisionDate": iso(record.provisioned),
            "startCpus": flavor.cores,
            "maxCpu": flavor.cores,
            "maxCpuUnits": "CORE",
            "maxMemory": flavor.memory_gb * 1024,
            "notes": record.notes,
            "dedicatedAccountHostOnlyFlag": False,
            "privateNetworkOnlyFlag": False,
            "placementGroupId": None,
            "postInstallScriptUri": "",
        },
        {
            "primaryIpAddress": lambda: record.public.address,
            "primaryBackendIpAddress": lambda: record.private.address,
            "hourlyBillingFlag": lambda: record.hourly,
            "localDiskFlag": lambda: not flavor.san,
            "transientGuestFlag": lambda: False,
            "status": lambda: {"keyName": "ACTIVE", "name": "Active"},
            "deviceStatus": lambda: {"name": "Active"},
            **dict.fromkeys(("powerState", "lastKnownPowerState"), lambda: {"keyName": "RUNNING", "name": "Running"}),
            "datacenter": lambda: datacenter(account.catalog.datacenter(record.datacenter)),
            "activeTransaction": lambda: transaction(account, pending) if pending else None,
            "lastTransaction": lambda: transaction(account, last) if last else None,
            "lastOperatingSystemReload": lambda: None,
            "billingItem": lambda: bills.billed(account, record.billing_item_id),
            "networkComponents": lambda: [component(account, record, each) for each in record.components],
            "networkVlans": lambda: [vlan(account, account.store.vlans[each.vlan_id]) for each in record.components],
            "primaryNetworkComponent": lambda: component(account, record, record.public),
            "primaryBackendNetworkComponent": lambda: component(account, record, record.private),
            "blockDevices": lambda: block_devices(record),
            "blockDeviceTemplateGroup": lambda: image(template) if template else None,
            "operatingSystem": lambda: systems[0] if systems else None,
            "softwareComponents": lambda: systems,
            "tagReferences": lambda: [
                {"id": 10 * record.id + place, "tag": {"id": crc32(name.encode()) >> 1, "name": name}}
                for place, name in enumerate(record.tags)
            ],
            "userData": lambda: [{"value": record.user_data}] if record.user_data else [],
            "bandwidthAllotmentDetail": lambda: None,
            "billingCycleBandwidthUsage": list,
            "dedicatedHost": lambda: None,
            "monitoringServiceComponent": lambda: None,
            "networkMonitors": list,
        },
    )


def operating_system(account: Account, record: Guest) -> View:
    """The system that a guest was ordered with; its password is known when it is built."""
    passwords = [{"username": "root", "password": record.password, "notes": ""}] if record.provisioned else []
    return View(
        {"id": record.id},
        {
            "passwords": lambda: passwords,
            "softwareLicense": lambda: {"softwareDescription": account.catalog.software[record.system_id]},
        },
    )


def datacenter(place: Datacenter) -> View:
    """A datacenter; no price depends on it."""
    return View({"id": place.id, "name": place.name, "longName": place.long_name}, {"priceGroups": list})


def component(account: Account, owner: Guest, record: Component) -> View:
    """A network interface."""
    groups = account.store.security_groups
    return View(
        {
            "id": record.id,
            "name": "eth",
            "port": record.port,
            "macAddress": f"06:{record.id.to_bytes(5).hex(':')}",
            "primaryIpAddress": record.address,
            "status": "ACTIVE",
            "speed": record.max_speed,
            "maxSpeed": record.max_speed,
        },
        {
            "guest": lambda: guest(account, owner),
            "primarySubnet": lambda: subnet(account.store.vlans[record.vlan_id]),
            "networkVlan": lambda: vlan(account, account.store.vlans[record.vlan_id]),
            "securityGroupBindings": lambda: [
                View({}, {"securityGroup": lambda each=each: group(account, groups[each])}) for each in record.groups
            ],
        },
    )


def block_devices(record: Guest) -> list[View]:
    """Every device: boot, swap, the extra disks and the metadata drive."""
    disks = sorted([*record.disks, SWAP, METADATA], key=lambda each: each.device)
    return [
        View(
            {
                "id": 10 * record.id + each.device,
                "device": str(each.device),
                "mountType": "Disk",
                "bootableFlag": int(each.device == 0),
            },
            {
                "diskImage": lambda each=each: {
                    "id": 10 * record.id + each.device,
                    "capacity": each.capacity_gb,
                    "units": "GB",
                    "name": f"{record.name} {each.device}",
                    "description": f"{record.name} {'SWAP' if each == SWAP else each.device}",
                }
            },
        )
        for each in disks
    ]


def transaction(account: Account, record: Transaction) -> View:
    """The pending transaction on a guest, with its current step."""
    step = transactions.step(record, account.now)
    minutes = record.duration_s / len(transactions.STEPS[record.group]) / 60
    status = {"name": step, "friendlyName": step.replace("_", " ").title(), "averageDuration": f"{minutes:.2f}"}
    until = min(account.now, transactions.due_at(record))
    return View(
        {
            "id": record.id,
            "createDate": iso(record.started),
            "modifyDate": iso(until),
            "statusChangeDate": iso(until),
            "elapsedSeconds": int(account.now - record.started),
        },
        {"transactionStatus": lambda: status, "transactionGroup": lambda: {"name": record.group}},
    )


def vlan(account: Account, record: Vlan) -> View:
    """A VLAN; its number follows from its id."""
    device, number = account.catalog.router(record.router_id), 2 + record.id % 4093
    space = "PRIVATE" if record.private else "PUBLIC"
    return View(
        {"id": record.id, "name": record.name, "vlanNumber": number},
        {
            "networkSpace": lambda: space,
            "fullyQualifiedName": lambda: f"{device.datacenter.name}.{device.hostname.split('.')[0]}.{number}",
            "podName": lambda: device.pod,
            "primaryRouter": lambda: router(device),
            "datacenter": lambda: datacenter(device.datacenter),
            "subnets": lambda: [subnet(record)],
            "totalPrimaryIpAddressCount": lambda: IPv4Network(record.cidr).num_addresses,
            "virtualGuests": lambda: [
                guest(account, each)
                for each in account.store.guests.read_all()
                if any(component.vlan_id == record.id for component in each.components)
            ],
            "billingItem": lambda: bills.billed(account, record.billing_item_id),
            "networkVlanFirewall": lambda: None,
            "attachedNetworkGateway": lambda: None,
            **dict.fromkeys(("firewallInterfaces", "hardware", "networkComponentTrunks", "tagReferences"), list),
        },
    )


def subnet(record: Vlan) -> View:
    """The one subnet of a VLAN, under the same id."""
    network, space = IPv4Network(record.cidr), "PRIVATE" if record.private else "PUBLIC"
    return View(
        {
            "id": record.id,
            "networkIdentifier": str(network.network_address),
            "cidr": network.prefixlen,
            "netmask": str(network.netmask),
            "gateway": str(network[1]),
            "subnetType": "PRIMARY",
            "usableIpAddressCount": network.num_addresses - 3,
        },
        {"addressSpace": lambda: space},
    )


def router(device: Router) -> View:
    """A router."""
    local = {
        "id": device.id,
        "hostname": device.hostname,
        "fullyQualifiedDomainName": f"{device.hostname}.softlayer.com",
    }
    return View(local, {"datacenter": lambda: datacenter(device.datacenter)})


def pod(account: Account, device: Router) -> View:
    """The pod of a backend router."""
    frontend = next(each for each in account.catalog.routers if each.pod == device.pod and not each.private)
    return View(
        {
            "name": device.pod,
            "datacenterId": device.datacenter.id,
            "datacenterName": device.datacenter.name,
            "datacenterLongName": device.datacenter.long_name,
            "backendRouterId": device.id,
            "backendRouterName": device.hostname,
            "frontendRouterId": frontend.id,
            "frontendRouterName": frontend.hostname,
            "capabilities": ["SUPPORTS_SECURITY_GROUP"],
        }
    )


def image(record: Image) -> View:
    """An image template group."""
    return View({"id": record.id, "globalIdentifier": record.guid, "name": record.name})


def ssh_key(account: Account, record: SshKey) -> View:
    """A public key."""
    return View(
        {
            "id": record.id,
            "label": record.label,
            "key": record.key,
            "fingerprint": record.fingerprint,
            "notes": record.notes,
            "createDate": iso(record.created),
        }
    )


def group(account: Account, record: SecurityGroup) -> View:
    """A security group."""
    return View(
        {
            "id": record.id,
            "name": record.name,
            "description": record.description,
            "createDate": iso(record.created),
            "modifyDate": iso(record.created),
        },
        {
            "rules": lambda: [rule(each) for each in record.rules],
            "networkComponentBindings": lambda: [
                View(
                    {"networkComponentId": bound.id},
                    {"networkComponent": lambda owner=owner, bound=bound: component(account, owner, bound)},
                )
                for owner, bound in attached_interfaces(account, record.id)
            ],
        },
    )


def rule(record: GroupRule) -> View:
    """A rule; what it does not restrict is left out."""
    created = iso(record.created)
    return View(
        {"id": record.id, "direction": record.direction, "ethertype": record.ethertype}
        | {"createDate": created, "modifyDate": created},
        {
            "protocol": lambda: record.protocol,
            "portRangeMin": lambda: record.port_min,
            "portRangeMax": lambda: record.port_max,
            "remoteIp": lambda: record.remote_ip,
            "remoteGroupId": lambda: record.remote_group_id,
        },
    )
