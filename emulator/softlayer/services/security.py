"""SSH keys, each fingerprint once, and security groups with their rules and the interfaces that they are attached to."""

import base64
import binascii
import hashlib
from functools import partial
from ipaddress import ip_network
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, apply_edit, find
from emulator.softlayer.create_template import number
from emulator.softlayer.faults import invalid_value, missing, not_found, public
from emulator.softlayer.guest_machines import attached_interfaces
from emulator.softlayer.objects import owned
from emulator.softlayer.orders import check_groups
from emulator.softlayer.queries import View
from emulator.softlayer.records import Component, GroupRule, SecurityGroup, SshKey
from emulator.softlayer.services.reading import every, one, relations

KEY_TYPES = {"ssh-rsa", "ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"}
RULES_PER_GROUP, GROUPS_PER_ACCOUNT, COMPONENTS_PER_GROUP, RULES_NAMING_A_GROUP = 50, 500, 100, 5


def create_key(account: Account, call: Call) -> View:
    """Add a public key."""
    fields = call.argument
    for name in ("key", "label"):
        if not fields.get(name):
            raise missing(name)
    mark = fingerprint(str(fields["key"]))
    for present in account.store.ssh_keys.values():
        if present.fingerprint == mark:
            raise public(f"SSH key already exists: fingerprint {mark} is that of SSH key {present.id}.")
    record = SshKey(
        account.next_id(), fields["label"], fields["key"].strip(), mark, fields.get("notes") or "", account.now
    )
    account.store.ssh_keys[record.id] = record
    return owned.ssh_key(account, record)


def edit(table: str, editable: tuple[str, ...], account: Account, call: Call) -> bool:
    """Change name or label, notes or description."""
    apply_edit(find(getattr(account.store, table), call), call, *editable)
    return True


def delete_key(account: Account, call: Call) -> bool:
    """Remove a public key from the account; guests keep what they were given."""
    del account.store.ssh_keys[find(account.store.ssh_keys, call).id]
    return True


def fingerprint(key: str) -> str:
    """SHA-256 of the key's bytes in colon-separated hex."""
    fields = key.split()
    try:
        blob = base64.b64decode(fields[1], validate=True)
    except (IndexError, binascii.Error) as wrong:
        raise invalid_value("key", "It is not a public key.") from wrong
    if fields[0] not in KEY_TYPES or not blob:
        raise invalid_value("key", f"'{fields[0]}' is not a type of public key.")
    return hashlib.sha256(blob).digest().hex(":")


def create_group(account: Account, call: Call) -> View:
    """Make a group; without rules it closes an interface in both directions."""
    fields = call.argument
    if not fields.get("name"):
        raise missing("name")
    if len(account.store.security_groups) >= GROUPS_PER_ACCOUNT:
        raise public(f"The account may have {GROUPS_PER_ACCOUNT} security groups.")
    record = SecurityGroup(account.next_id(), fields["name"], fields.get("description") or "", account.now)
    account.store.security_groups[record.id] = record
    return owned.group(account, record)


def delete_group(account: Account, call: Call) -> bool:
    """Remove a group that is attached to no interface and named by no other group."""
    record = find(account.store.security_groups, call)
    attached = attached_interfaces(account, record.id)
    if attached:
        names = ", ".join(sorted({guest.name for guest, _ in attached}))
        raise public(f"Security group {record.id} is in use by the network components of {names}.")
    for other in account.store.security_groups.values():
        if other is not record and any(rule.remote_group_id == record.id for rule in other.rules):
            raise public(f"Security group {record.id} is in use: a rule of security group {other.id} names it.")
    del account.store.security_groups[record.id]
    return True


def add_rules(account: Account, call: Call) -> dict[str, Any]:
    """Add rules to a group."""
    record = find(account.store.security_groups, call)
    added = [_read_rule(account, wanted) for wanted in call.argument]
    record.rules += added
    _check_limits(account, record)
    return _request(account, rules=[owned.rule(each) for each in added])


def remove_rules(account: Account, call: Call) -> dict[str, Any]:
    """Remove rules from a group."""
    record, rule_ids = find(account.store.security_groups, call), call.argument
    for missing_id in set(rule_ids) - {rule.id for rule in record.rules}:
        raise not_found(missing_id)
    record.rules = [rule for rule in record.rules if rule.id not in rule_ids]
    return _request(account)


def attach(account: Account, call: Call) -> dict[str, Any]:
    """Attach a group to interfaces."""
    record = find(account.store.security_groups, call)
    for component in _components(account, call):
        if record.id not in component.groups:
            component.groups.append(record.id)
            check_groups(account, component.groups)
    if len(attached_interfaces(account, record.id)) > COMPONENTS_PER_GROUP:
        raise public(f"Security group {record.id} may be on {COMPONENTS_PER_GROUP} network components.")
    return _request(account)


def detach(account: Account, call: Call) -> dict[str, Any]:
    """Detach a group from interfaces."""
    record = find(account.store.security_groups, call)
    for component in _components(account, call):
        if record.id not in component.groups:
            raise public(f"Security group {record.id} is not on network component {component.id}.")
        component.groups.remove(record.id)
    return _request(account)


def _request(account: Account, **more: Any) -> dict[str, Any]:
    return {"requestId": account.token().replace("-", ""), **more}


def _components(account: Account, call: Call) -> list[Component]:
    known = {each.id: each for guest in account.store.guests.values() for each in guest.components}
    component_ids = [number(each, "networkComponentIds") for each in call.argument]
    for component_id in component_ids:
        if component_id not in known:
            raise not_found(component_id)
    return [known[component_id] for component_id in component_ids]


def _read_rule(account: Account, wanted: dict[str, Any]) -> GroupRule:
    group_id = wanted.get("remoteGroupId")
    if group_id and group_id not in account.store.security_groups:
        raise not_found(group_id)
    rule = GroupRule(
        id=account.next_id(),
        direction=wanted.get("direction", ""),
        ethertype=wanted.get("ethertype") or "IPv4",
        protocol=wanted.get("protocol") or None,
        port_min=wanted.get("portRangeMin"),
        port_max=wanted.get("portRangeMax"),
        remote_ip=wanted.get("remoteIp") or None,
        remote_group_id=group_id or None,
        created=account.now,
    )
    _check_rule(rule)
    return rule


def _check_rule(rule: GroupRule) -> None:
    if rule.direction not in {"ingress", "egress"}:
        raise invalid_value("direction", f"'{rule.direction}' is not ingress or egress.")
    if rule.ethertype not in {"IPv4", "IPv6"}:
        raise invalid_value("ethertype", f"'{rule.ethertype}' is not IPv4 or IPv6.")
    if rule.protocol not in {None, "tcp", "udp", "icmp"}:
        raise invalid_value("protocol", f"'{rule.protocol}' is not tcp, udp or icmp.")
    if (rule.port_min is not None or rule.port_max is not None) and rule.protocol is None:
        raise invalid_value("portRangeMin", "Ports need a protocol.")
    if rule.protocol in {"tcp", "udp"} and not 0 <= (rule.port_min or 0) <= (rule.port_max or 65535) <= 65535:
        raise invalid_value("portRangeMax", f"{rule.port_min}-{rule.port_max} is not a range of ports.")
    if rule.remote_ip and rule.remote_group_id:
        raise invalid_value("remoteIp", "A rule names addresses or a group, not both.")
    if rule.remote_ip:
        try:
            version = ip_network(rule.remote_ip).version
        except ValueError as wrong:
            raise invalid_value("remoteIp", f"'{rule.remote_ip}' is not a network.") from wrong
        if f"IPv{version}" != rule.ethertype:
            raise invalid_value("remoteIp", f"'{rule.remote_ip}' is not {rule.ethertype}.")


def _check_limits(account: Account, record: SecurityGroup) -> None:
    if len(record.rules) > RULES_PER_GROUP:
        raise public(f"A security group may have {RULES_PER_GROUP} rules.")
    every = [rule for group in account.store.security_groups.values() for rule in group.rules]
    for group_id in {rule.remote_group_id for rule in every} - {None}:
        if sum(rule.remote_group_id == group_id for rule in every) > RULES_NAMING_A_GROUP:
            raise public(f"At most {RULES_NAMING_A_GROUP} rules may name security group {group_id} as remote group.")


GROUP = partial(one, owned.group, "security_groups")
SERVICES = {
    "SoftLayer_Security_Ssh_Key": {
        "createObject": create_key,
        "getObject": partial(one, owned.ssh_key, "ssh_keys"),
        "editObject": partial(edit, "ssh_keys", ("label", "notes")),
        "deleteObject": delete_key,
    },
    "SoftLayer_Network_SecurityGroup": {
        "getAllObjects": partial(
            every, lambda account: [owned.group(account, each) for each in account.store.security_groups.read_all()]
        ),
        "getObject": GROUP,
        "createObject": create_group,
        "editObject": partial(edit, "security_groups", ("name", "description")),
        "deleteObject": delete_group,
        "addRules": add_rules,
        "removeRules": remove_rules,
        "attachNetworkComponents": attach,
        "detachNetworkComponents": detach,
        **relations(GROUP, "rules"),
    },
}
