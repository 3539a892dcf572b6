"""Security groups resolved: the rules that each interface of a guest has, with members as addresses."""

from __future__ import annotations

from emulator.machines import Rule
from emulator.softlayer.account import Account
from emulator.softlayer.records import Component, GroupRule, Guest

ANYWHERE = "0.0.0.0/0"


def rules_of(account: Account, component: Component | None) -> tuple[Rule, ...] | None:
    """The rules on an interface; None when it wears no group, and then everything is open."""
    if component is None or not component.groups:
        return None
    groups = [account.store.security_groups[group_id] for group_id in sorted(component.groups)]
    return tuple(_resolved(account, rule, component.port) for group in groups for rule in group.rules if _is_v4(rule))


def wearers(account: Account, group_id: int) -> list[tuple[Guest, Component]]:
    """The interfaces that wear a group, also those of guests that are being reclaimed."""
    return [
        (guest, component)
        for guest in account.store.guests.values()
        for component in guest.components
        if group_id in component.groups
    ]


def _resolved(account: Account, rule: GroupRule, port: int) -> Rule:
    remote: tuple[str, ...] = ()
    if rule.remote_group_id is not None:
        members = wearers(account, rule.remote_group_id)
        addresses = sorted(f"{component.address}/32" for _, component in members if component.port == port)
        # A group without members on this network lets nobody in; an empty tuple would let everybody in.
        remote = tuple(addresses) or ("255.255.255.255/32",)
    elif rule.remote_ip and rule.remote_ip != ANYWHERE:
        remote = (rule.remote_ip if "/" in rule.remote_ip else f"{rule.remote_ip}/32",)
    return Rule(rule.direction, rule.protocol, rule.port_min, rule.port_max, remote)


def _is_v4(rule: GroupRule) -> bool:
    return rule.ethertype == "IPv4"
