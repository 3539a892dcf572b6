"""The stack that the campaigns bring up: a ledger, a key, a security group and some guests, in the order of their dependencies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.chaos.state import Resource

STACK = "test"
MARK = "1f3a9c42"
DOMAIN = f"{STACK}-{MARK}.microcluster"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZpZnR5LW9uZS1ieXRlcy1vZi1ub3RoaW5nLWF0LWFs"
TAGS = ["microcluster", f"mc-mark-{MARK}", f"mc-stack-{STACK}"]
SIZE = {
    "datacenter": "lon06",
    "flavor": "AC1_16X120X100",
    "os": "UBUNTU_18_64",
    "dataDisksGb": [2000],
    "portSpeedMbps": 1000,
}
RULES = [
    {"direction": "egress"},
    {"direction": "ingress", "remoteSelf": True},
    {"direction": "ingress", "protocol": "tcp", "portMin": 22, "portMax": 22, "remoteCidr": "198.51.100.7/32"},
]
Made = Mapping[str, Resource]


@dataclass(frozen=True)
class Declared:
    """A resource as the program declares it; its inputs follow from what was made before it."""

    kind: str
    name: str
    inputs: Callable[[Made], dict[str, Any]]


Program = list[list[Declared]]
"""Levels: what stands in one depends on all that stands before."""


def cluster(hostnames: tuple[str, ...] = ("gpu-0", "gpu-1")) -> Program:
    """Declare a cluster."""
    ledger = {"mark": MARK, "stack": STACK, "nodes": len(hostnames), **SIZE}
    key = {"mark": MARK, "label": f"{STACK}-{MARK}", "publicKey": PUBLIC_KEY}
    members = {"mark": MARK, "name": f"{STACK}-{MARK}-members", "description": "members", "rules": RULES}
    return [
        [Declared("Ledger", "ledger", lambda _: ledger)],
        [Declared("SshKey", "key", lambda _: key), Declared("SecurityGroup", "members", lambda _: members)],
        [Declared("VirtualGuest", hostname, lambda made, name=hostname: _guest(name, made)) for hostname in hostnames],
    ]


def _guest(hostname: str, made: Made) -> dict[str, Any]:
    return {
        "mark": MARK,
        "hostname": hostname,
        "domain": DOMAIN,
        "tags": TAGS,
        **SIZE,
        "backendRouterId": made["ledger"].outputs["backendRouterId"],
        "sshKeyIds": [made["key"].id],
        "publicSecurityGroupIds": [made["members"].id],
        "privateSecurityGroupIds": [made["members"].id],
    }
