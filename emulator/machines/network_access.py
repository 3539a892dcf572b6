"""A machine's rules, routes and speeds, set from outside its network once it runs.

Security groups become input of iptables-restore, which replaces all rules in one step.
"""

import ipaddress
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.machines.host_tools import in_network_of
from emulator.machines.spec import Access, MachineError, Rule

PRIVATE, PUBLIC = "eth0", "eth1"
LISTENING = "0A"  # The state column of /proc/net/tcp.
LEAST_BURST_BYTES = 64 * 1024  # At least one segment that the kernel has not yet split.
BURST_S = 0.002


@dataclass(frozen=True)
class Attachment:
    """Network attachment of a running machine: its first process, its addresses, and the account's services."""

    guest_id: int
    pid: int
    private_address: str
    public_address: str | None
    private_gateway: str
    services: str


def this_start(pid: int) -> str:
    """A name for this start of a machine; its init computes the same one."""
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{os.readlink(f'/proc/{pid}/ns/net')} {started}"


def apply(machine: Attachment, access: Access) -> None:
    """Set everything; a machine lacks the rights to change it."""
    _check_names(machine)
    doing = f"Setting up the network of machine {machine.guest_id}"
    rules = firewall_text(access.private, access.public)
    in_network_of(machine.pid, doing, ("iptables-restore", "-w", "10"), stdin=rules)
    if machine.services != machine.private_gateway:
        route = ("ip", "route", "replace", machine.services, "via", machine.private_gateway, "dev", PRIVATE)
        in_network_of(machine.pid, doing, route)
    if access.private_mbps:
        in_network_of(machine.pid, doing, shaping_argv(PRIVATE, access.private_mbps))
    if machine.public_address and access.public_mbps:
        in_network_of(machine.pid, doing, shaping_argv(PUBLIC, access.public_mbps))


def shaping_argv(interface: str, mbps: int) -> tuple[str, ...]:
    """The argv that holds ``interface`` to ``mbps`` megabits per second, whatever held it before."""
    burst = max(LEAST_BURST_BYTES, int(mbps * 1e6 / 8 * BURST_S))
    limits = ("rate", f"{mbps}mbit", "burst", str(burst), "latency", "50ms")
    return ("tc", "qdisc", "replace", "dev", interface, "root", "tbf", *limits)


def listens(pid: int, port: int) -> bool:
    """Whether a machine's service listens, without a connection: the machine's rules might refuse one."""
    tables = (Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = (line.split() for table in tables for line in table)
    return any(row[1].endswith(f":{port:04X}") and row[3] == LISTENING for row in rows)


def _check_names(machine: Attachment) -> None:
    addresses = {
        link["ifname"]: {address["local"] for address in link["addr_info"]}
        for link in json.loads(
            in_network_of(machine.pid, f"Reading the network of machine {machine.guest_id}", ("ip", "-j", "-4", "addr"))
        )
    }
    for name, address in ((PRIVATE, machine.private_address), (PUBLIC, machine.public_address)):
        if address and address not in addresses.get(name, ()):
            raise MachineError(
                f"Setting up the network of machine {machine.guest_id}: Docker did not make {name} the interface of"
                f" {address}. Use Debian's docker.io (20.10) or a Docker of version 28 or newer."
            )


def firewall_text(private: Sequence[Rule] | None, public: Sequence[Rule] | None) -> str:
    """The whole filter table; None leaves an interface open, an empty sequence closes it both ways."""
    lines = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]"]
    for chain in ("INPUT", "OUTPUT"):
        lines.append(f"-A {chain} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT")
    for interface, rules in ((PRIVATE, private), (PUBLIC, public)):
        if rules is not None:
            lines += _interface(interface, rules)
    return "\n".join([*lines, "COMMIT", ""])


def _interface(interface: str, rules: Iterable[Rule]) -> Iterator[str]:
    for rule in rules:
        for remote in _remotes(rule):
            chain, side, address = ("INPUT", "-i", "-s") if rule.direction == "ingress" else ("OUTPUT", "-o", "-d")
            yield " ".join(("-A", chain, side, interface, address, remote, *_protocol(rule), "-j", "ACCEPT"))
    yield f"-A INPUT -i {interface} -j DROP"
    yield f"-A OUTPUT -o {interface} -j DROP"


def _remotes(rule: Rule) -> tuple[str, ...]:
    """The IPv4 ranges; the machines have no IPv6, so a rule for IPv6 alone lets nothing pass."""
    ranges = (ipaddress.ip_network(remote, strict=False) for remote in rule.remote)
    return tuple(str(each) for each in ranges if each.version == 4) if rule.remote else ("0.0.0.0/0",)


def _protocol(rule: Rule) -> tuple[str, ...]:
    if rule.protocol is None:
        return ()
    if rule.port_min is None:
        return ("-p", rule.protocol)
    if rule.protocol == "icmp":  # SoftLayer puts type and code in the fields of the ports.
        code = "" if rule.port_max is None else f"/{rule.port_max}"
        return ("-p", "icmp", "--icmp-type", f"{rule.port_min}{code}")
    last = rule.port_min if rule.port_max is None else rule.port_max
    return ("-p", rule.protocol, "--dport", f"{rule.port_min}:{last}")
