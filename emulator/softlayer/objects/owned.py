"""What the account has and may order as the API shows it: guests, networks, keys, security groups and images."""

from emulator.machines.spec import Disk
from emulator.softlayer import transactions
from emulator.softlayer.account import Account
from emulator.softlayer.catalog import Image, Router
from emulator.softlayer.dates import iso
from emulator.softlayer.guest_machines import attached_interfaces
from emulator.softlayer.objects import bills
from emulator.softlayer.queries import View
from emulator.softlayer.records import Component, GroupRule, Guest, SecurityGroup, SshKey, Transaction, Vlan

SWAP, METADATA = Disk(1, 2), Disk(7, 1)  # beside the disks of the order


def guest(account: Account, record: Guest) -> View:
    """A virtual guest, from its order to the end of its reclaim."""
    pending = record.active(account.now)
    template = account.catalog.image(record.image_id) if record.image_id else None
    return View(
        {
            "id": record.id,
            "hostname": record.hostname,
            "domain": record.domain,
            "createDate": iso(record.created),
            "provisionDate": iso(record.provisioned),
            "notes": record.notes,
        },
        {
            "primaryIpAddress": lambda: record.public.address,
            "primaryBackendIpAddress": lambda: record.private.address,
            "hourlyBillingFlag": lambda: record.hourly,
            "deviceStatus": lambda: {"name": "Active"},
            "datacenter": lambda: {"name": record.datacenter},
            "activeTransaction": lambda: transaction(account, pending) if pending else None,
            "billingItem": lambda: bills.billed(account, record.billing_item_id),
            "primaryNetworkComponent": lambda: component(account, record, record.public),
            "primaryBackendNetworkComponent": lambda: component(account, record, record.private),
            "blockDevices": lambda: block_devices(record),
            "blockDeviceTemplateGroup": lambda: image(template) if template else None,
            "tagReferences": lambda: [{"tag": {"name": name}} for name in record.tags],
            "userData": lambda: [{"value": record.user_data}] if record.user_data else [],
        },
    )


def component(account: Account, owner: Guest, record: Component) -> View:
    """A network interface."""
    groups = account.store.security_groups
    return View(
        {"id": record.id, "maxSpeed": record.max_speed},
        {
            "guest": lambda: guest(account, owner),
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
        View({"device": str(each.device)}, {"diskImage": lambda each=each: {"capacity": each.capacity_gb}})
        for each in disks
    ]


def transaction(account: Account, record: Transaction) -> View:
    """The pending transaction on a guest, with its current step."""
    step = transactions.step(record, account.now)
    minutes = record.duration_s / len(transactions.STEPS[record.group]) / 60
    status = {"name": step, "friendlyName": step.replace("_", " ").title(), "averageDuration": f"{minutes:.2f}"}
    return View(
        {"id": record.id, "elapsedSeconds": int(account.now - record.started)},
        {"transactionStatus": lambda: status, "transactionGroup": lambda: {"name": record.group}},
    )


def vlan(account: Account, record: Vlan) -> View:
    """A VLAN."""
    device = account.catalog.router(record.router_id)
    space = "PRIVATE" if record.private else "PUBLIC"
    return View(
        {"id": record.id, "name": record.name},
        {"networkSpace": lambda: space, "primaryRouter": lambda: router(device)},
    )


def router(device: Router) -> View:
    """A router."""
    return View({"id": device.id}, {"datacenter": lambda: {"name": device.datacenter.name}})


def pod(device: Router) -> View:
    """The pod of a backend router."""
    return View(
        {
            "name": f"{device.datacenter.name}.pod{device.pod:02d}",
            "datacenterId": device.datacenter.id,
            "backendRouterId": device.id,
            "capabilities": ["SUPPORTS_SECURITY_GROUP"],
        }
    )


def image(record: Image) -> View:
    """An image template group."""
    return View({"id": record.id, "globalIdentifier": record.guid})


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
    return View(
        {"id": record.id, "direction": record.direction, "ethertype": record.ethertype},
        {
            "protocol": lambda: record.protocol,
            "portRangeMin": lambda: record.port_min,
            "portRangeMax": lambda: record.port_max,
            "remoteIp": lambda: record.remote_ip,
            "remoteGroupId": lambda: record.remote_group_id,
        },
    )
