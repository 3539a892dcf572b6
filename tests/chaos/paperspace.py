"""The stack that is brought up at Paperspace: a ledger, a network, a drive and some machines; and other people's things."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from microcluster.core.home import owner_mark
from tests.chaos.market import HOSTNAMES, LEASE_H, Declared, Line, Made, Market, Post, Program
from tests.chaos.provider import STACK

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
"""The stack's key: the same in every run, and nobody's."""
PUBLIC_KEY = KEY.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
MARK = owner_mark(PUBLIC_KEY)
DOMAIN = f"{STACK}-{MARK}.microcluster"
OTHER_DOMAINS = (
    f"{STACK}-00000000.microcluster",
    f"copy-{MARK}.microcluster",
    "other-11111111.microcluster",
    "example.com",
)
SIZE = {"region": "ny2", "machineType": "P4000x2", "templateId": "twnlo3zj", "diskGb": 50, "publicIpType": "static"}
DRIVE_GB = 250


def _cluster() -> Program:
    ledger = {"mark": MARK, **SIZE, "stack": STACK, "nodes": len(HOSTNAMES), "driveGb": DRIVE_GB}
    ledger["leaseMinutes"] = LEASE_H * 60
    network = {"mark": MARK, "name": "net", "region": SIZE["region"]}
    drive = {"name": "data", "sizeGb": DRIVE_GB}
    return [
        [Declared("Ledger", "ledger", lambda _: ledger)],
        [Declared("PrivateNetwork", "net", lambda _: network)],
        [Declared("SharedDrive", "data", lambda made: {**_inside(made), **drive})],
        [Declared("Machine", hostname, lambda made, name=hostname: _machine(name, made)) for hostname in HOSTNAMES],
    ]


def _inside(made: Made) -> dict[str, Any]:
    return {"mark": MARK, "region": SIZE["region"], "networkId": made["net"].id}


def _machine(hostname: str, made: Made) -> dict[str, Any]:
    own = {"hostname": hostname, "publicKey": PUBLIC_KEY}
    return {**SIZE, **_inside(made), **own}


def _settle(post: Post) -> None:
    """Order a machine with its network, its drive and its script, once for each of the other people."""
    place = {"machineType": "P4000x2", "templateId": "twnlo3zj", "region": "ny2", "diskSize": 50, "startOnCreate": True}
    for domain in OTHER_DOMAINS:
        net = post("/v1/private-networks", {"name": f"net.{domain}", "region": "ny2"})["id"]
        machine = {"name": f"gpu-0.{domain}", "networkId": net, "publicIpType": "dynamic", **place}
        post("/v1/machines", machine)
        post("/v1/shared-drives", {"name": f"data.{domain}", "region": "ny2", "size": DRIVE_GB, "networkId": net})
        post("/v1/startup-scripts", {"name": f"claim-00000000.{domain}", "script": "true"})


def _in_checkers_words(line: Line) -> Iterator[Line]:
    """Tell of a machine's bill as a billing item, and of everything else that can be left as a group."""
    if line["kind"] != "event":
        return
    name, what, event = str(line.get("name") or ""), line["what"], line["event"]
    if what == "billing_item" and line["bills"] == "machine" and event in ("made", "closed"):
        host, _, domain = name.partition(".")
        yield {**line, "host": host, "domain": domain}
    elif what in ("network", "drive", "script", "public_ip") and event in ("made", "removed"):
        # An address has no name, and other people have none here.
        notes = name or f"address {line['ref']} of {STACK}-{MARK}"
        yield {**line, "what": "security_group", "notes": notes}


def _prepare(home: Path) -> None:
    folder = home / "keys" / STACK
    folder.mkdir(parents=True)
    (folder / "id_ed25519").write_bytes(KEY.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))


PAPERSPACE = Market(
    vendor="paperspace",
    key_setting="apiKeyFile",
    authorization="Bearer {}".format,
    domain=DOMAIN,
    program=_cluster(),
    settle=_settle,
    settings={},
    fault_kinds=("error", "lost_call", "lost_reply", "malformed", "stale", "reordered", "capacity"),
    fault_share=0.15,
    longest_lag_s=60.0,
    only_machines_cost=False,
    in_checkers_words=_in_checkers_words,
    prepare=_prepare,
)
