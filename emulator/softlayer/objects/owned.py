"""What the account owns as the API shows it: guests, VLANs, keys and security groups."""

import hashlib
from typing import Any

from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso
from emulator.softlayer.guest_machines import attached_interfaces
from emulator.softlayer.objects import bills, offered
from emulator.softlayer.records import (
    Component,
    GroupRule,
    Guest,
    SecurityGroup,
    SshKey,
    Transaction,
    Vlan,
)
from emulator.softlayer.views import View

ACTIVE_ID = 1001
SWAP_GB, METADATA_MB = 2, 64
RUNNING = {"keyName": "RUNNING", "name": "Running"}


def guest(account: Account, record: Guest) -> View:
    """A virtual guest, from its order to the end of its reclaim."""
    flavor = account.flavor_of(record)
    local = {
        "id": record.id,
        "accountId": account.id,
        "globalIdentifier": record.uuid,
        "uuid": record.uuid,
        "hostname": record.hostname,
        "domain": record.domain,
        "fullyQualifiedDomainName": record.name,
        "createDate": iso(record.created),
        "modifyDate": iso(record.modified),
        "provisionDate": iso(record.provisioned),
        "startCpus": flavor.cores,
        "maxCpu": flavor.cores,
        "maxCpuUnits": "CORE",
        "maxMemory": flavor.memory_gb * 1024,
        "notes": record.notes,
        "statusId": ACTIVE_ID,
        "dedicatedAccountHostOnlyFlag": False,
        "privateNetworkOnlyFlag": False,
    }
    return View(local, _of_guest(account, record))


def created(account: Account, record: Guest) -> View:
    """A guest as ``createObject`` answers: local properties alone."""
    return View(guest(account, record).local)


def component(account: Account, owner: Guest, record: Component) -> View:
    """A network interface."""
    return View(
        {
            "id": record.id,
            "guestId": owner.id,
            "name": "eth",
            "port": record.port,
            "macAddress": record.mac,
            "primaryIpAddress": record.address,
            "status": "ACTIVE",
            "speed": record.max_speed,
            "maxSpeed": record.max_speed,
            "uuid": f"{owner.uuid[:-1]}{record.port}",
        },
        {
            "guest": lambda: guest(account, owner),
            "networkVlan": lambda: vlan(account, account.store.vlans[record.vlan_id]),
            "securityGroupBindings": lambda: [
                View(
                    {"networkComponentId": record.id, "securityGroupId": each},
                    {"securityGroup": lambda each=each: group(account, account.store.security_groups[each])},
                )
                for each in record.groups
            ],
        },
    )


def block_devices(record: Guest) -> list[View]:
    """Every device: boot, swap, the extra disks and the metadata drive."""
    base = record.disks[0].block_device_id * 100
    made = [
        (disk.block_device_id, disk.device, {"id": disk.id, "capacity": disk.capacity_gb, "units": "GB"})
        for disk in record.disks
    ]
    made.append((base + 1, 1, {"id": base + 1, "capacity": SWAP_GB, "units": "GB"}))
    made.append((base + 7, 7, {"id": base + 7, "capacity": METADATA_MB, "units": "MB"}))
    return [
        View(
            {
                "id": number,
                "guestId": record.id,
                "device": str(device),
                "mountType": "Disk",
                "mountMode": "RW",
                "bootableFlag": int(device == 0),
                "createDate": iso(record.created),
                "diskImageId": disk_image["id"],
            },
            {"diskImage": lambda disk_image=disk_image: disk_image},
        )
        for number, device, disk_image in sorted(made, key=lambda each: each[1])
    ]


def transaction(account: Account, owner: Guest, record: Transaction) -> View:
    """The pending transaction on a guest, with its current step."""
    step = transactions.step(record, account.now)
    minutes = record.duration_s / len(transactions.STEPS[record.group]) / 60
    status = {"name": step, "friendlyName": step.replace("_", " ").title(), "averageDuration": f"{minutes:.2f}"}
    return View(
        {
            "id": record.id,
            "guestId": owner.id,
            "hardwareId": None,
            "createDate": iso(record.started),
            "modifyDate": iso(account.now),
            "statusChangeDate": iso(account.now),
            "elapsedSeconds": int(account.now - record.started),
        },
        {"transactionStatus": lambda: status, "transactionGroup": lambda: {"name": record.group}},
    )


def vlan(account: Account, record: Vlan) -> View:
    """A VLAN; an automatic one has no billing item."""
    items, device = account.store.billing_items, account.catalog.router(record.router_id)
    return View(
        {"id": record.id, "vlanNumber": record.number, "name": record.name, "primarySubnetId": record.subnet_id},
        {
            "networkSpace": lambda: "PRIVATE" if record.private else "PUBLIC",
            "primaryRouter": lambda: offered.router(device),
            "billingItem": lambda: (
                bills.billed(account, items[record.billing_item_id]) if record.billing_item_id else None
            ),
        },
    )


def ssh_key(record: SshKey) -> View:
    """A public key."""
    return View(
        {
            "id": record.id,
            "label": record.label,
            "key": record.key,
            "fingerprint": record.fingerprint,
            "notes": record.notes,
            "createDate": iso(record.created),
            "modifyDate": iso(record.modified),
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
            "modifyDate": iso(record.modified),
        },
        {
            "rules": lambda: [rule(record, each) for each in record.rules],
            "networkComponentBindings": lambda: [
                View(
                    {"networkComponentId": bound.id, "securityGroupId": record.id},
                    {"networkComponent": lambda owner=owner, bound=bound: component(account, owner, bound)},
                )
                for owner, bound in attached_interfaces(account, record.id)
            ],
        },
    )


def rule(owner: SecurityGroup, record: GroupRule) -> View:
    """A rule; what it does not restrict is left out."""
    optional = {
        "protocol": record.protocol,
        "portRangeMin": record.port_min,
        "portRangeMax": record.port_max,
        "remoteIp": record.remote_ip,
        "remoteGroupId": record.remote_group_id,
    }
    local = {
        "id": record.id,
        "securityGroupId": owner.id,
        "direction": record.direction,
        "ethertype": record.ethertype,
        "createDate": iso(record.created),
        "modifyDate": iso(record.modified),
    }
    given = {name: value for name, value in optional.items() if value is not None}
    return View(local | given, {name: lambda: None for name in optional.keys() - given.keys()})


def _of_guest(account: Account, record: Guest) -> dict[str, Any]:
    """The relations of a guest, and the properties that are not local."""
    pending, keys = record.transaction, account.store.ssh_keys
    system = account.catalog.system(record.system) if record.system else None
    image = account.catalog.image(record.image_id) if record.image_id else None
    password = {"username": "root", "password": record.password, "notes": ""}
    passwords = [password] if record.provisioned else []
    router_id = account.store.vlans[record.private.vlan_id].router_id

    return {
        "primaryIpAddress": lambda: record.public.address,
        "primaryBackendIpAddress": lambda: record.private.address,
        "hourlyBillingFlag": lambda: record.hourly,
        "localDiskFlag": lambda: not account.flavor_of(record).san,
        "status": lambda: {"keyName": "ACTIVE", "name": "Active"},
        "deviceStatus": lambda: {"id": 1, "name": "Active", "keyName": "ACTIVE"},
        "powerState": lambda: RUNNING,
        "datacenter": lambda: offered.datacenter(account.datacenter_of(record)),
        "activeTransaction": lambda: transaction(account, record, pending) if pending else None,
        "lastOperatingSystemReload": lambda: None,
        "billingItem": lambda: bills.of_guest(account, record),
        "primaryNetworkComponent": lambda: component(account, record, record.public),
        "primaryBackendNetworkComponent": lambda: component(account, record, record.private),
        "backendRouters": lambda: [offered.router(account.catalog.router(router_id))],
        "blockDevices": lambda: block_devices(record),
        "blockDeviceTemplateGroup": lambda: offered.image(account, image) if image else None,
        "operatingSystem": lambda: offered.installed(record.id, passwords, system) if system else None,
        "tagReferences": lambda: _tag_references(record.tags),
        "userData": lambda: [{"value": record.user_data}] if record.user_data else [],
        "sshKeys": lambda: [ssh_key(keys[each]) for each in record.ssh_key_ids if each in keys],
    }


def _tag_references(tags: list[str]) -> list[dict[str, Any]]:
    """Tags as references; ids follow from the names."""
    ids = {name: int.from_bytes(hashlib.sha256(name.encode()).digest()[:3], "big") * 2 for name in tags}
    return [{"id": ids[name] + 1, "tagId": ids[name], "tag": {"id": ids[name], "name": name}} for name in tags]
