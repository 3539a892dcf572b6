"""SSH keys, security groups and tags as the API shows them."""

import hashlib
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.dates import iso
from emulator.softlayer.guest_machines import attached_interfaces
from emulator.softlayer.objects import guests
from emulator.softlayer.records import GroupRule, SecurityGroup, SshKey
from emulator.softlayer.views import View


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
                    {"networkComponentId": component.id, "securityGroupId": record.id},
                    {"networkComponent": lambda guest=guest, each=component: guests.component(account, guest, each)},
                )
                for guest, component in attached_interfaces(account, record.id)
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
    return View(local | {name: value for name, value in optional.items() if value is not None})


def tag_references(tags: list[str]) -> list[dict[str, Any]]:
    """Tags as references; ids follow from the names."""
    return [{"id": tag_id(name) + 1, "tagId": tag_id(name), "tag": {"id": tag_id(name), "name": name}} for name in tags]


def tag_id(name: str) -> int:
    """A tag's id, the same for the same name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:3], "big") * 2
