"""The stack that is brought up at SoftLayer: a ledger, a key, a security group and some guests; and other people's things."""

import base64
from typing import Any

from tests.chaos.market import HOSTNAMES, LEASE_H, Declared, Made, Market, Post, Program
from tests.chaos.provider import STACK

MARK = "1f3a9c42"
OTHER_MARK = "1f3a9c40"
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


def cluster(hostnames: tuple[str, ...] = HOSTNAMES) -> Program:
    """Declare a cluster."""
    ledger = {"mark": MARK, "stack": STACK, "nodes": len(hostnames), "leaseMinutes": LEASE_H * 60, **SIZE}
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


def _settle(post: Post) -> None:
    """Order a machine, a key and a group of another stack, and the machines of a copied folder of keys and of a stranger."""

    def ask(place: str, *arguments: Any) -> Any:
        return post(f"/rest/v3.1/SoftLayer_{place}.json", {"parameters": arguments})

    for domain in (f"{STACK}-{OTHER_MARK}.microcluster", f"copy-{MARK}.microcluster", "example.com"):
        guest = ask("Virtual_Guest/createObject", guest_template(domain))
        ask(f"Virtual_Guest/{guest['id']}/setTags", ",".join(TAGS))
    notes = f"microcluster {STACK}-{OTHER_MARK}"
    key = {"key": f"{PUBLIC_KEY[:-4]}AAAA", "label": f"{STACK}-{MARK}", "notes": notes}
    ask("Security_Ssh_Key/createObject", key)
    group = {"name": f"{STACK}-{OTHER_MARK}-members", "description": f"{notes}: members"}
    made = ask("Network_SecurityGroup/createObject", group)
    ask(f"Network_SecurityGroup/{made['id']}/addRules", [{"direction": "egress"}])


def guest_template(domain: str) -> dict[str, Any]:
    """Return the order of the first machine, under a domain."""
    return {
        "hostname": HOSTNAMES[0],
        "domain": domain,
        "datacenter": {"name": SIZE["datacenter"]},
        "hourlyBillingFlag": True,
        "localDiskFlag": False,
        "supplementalCreateObjectOptions": {"flavorKeyName": SIZE["flavor"]},
        "operatingSystemReferenceCode": SIZE["os"],
        "blockDevices": [{"device": "2", "diskImage": {"capacity": 100}}],
        "networkComponents": [{"maxSpeed": 1000}],
    }


SOFTLAYER = Market(
    vendor="softlayer",
    key_setting="configFile",
    authorization=lambda key: f"Basic {base64.b64encode(f'local:{key}'.encode()).decode()}",
    domain=DOMAIN,
    program=cluster(),
    settle=_settle,
    settings={"reclaim_s": 1.0, "instance_limit": 200, "public_subnet": "198.51.100.0/24"},
    fault_kinds=("error", "lost_call", "lost_reply", "malformed", "slow", "stale", "capacity", "held"),
    fault_share=0.25,
    longest_lag_s=120.0,
)
